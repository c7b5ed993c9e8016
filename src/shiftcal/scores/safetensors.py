"""``.safetensors``: named tensors, with text in the header."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError
from shiftcal.scores._arrays import numbers_of
from shiftcal.scores._assemble import KINDS, OPTIONAL, from_arrays
from shiftcal.scores._opening import parsing
from shiftcal.scores._scores import Scores

_TEXTS = ("ids", "classes")
_REAL = re.compile("F64|F32|F16|BF16|BOOL|[IU](8|16|32|64)")


def read(path: Path) -> Scores:
    """Scores from tensors ``logits`` and so on; ``classes`` and ``ids`` are JSON in the header."""
    from safetensors import safe_open

    with parsing(path, "a .safetensors file"), safe_open(path, framework="numpy") as file:
        names = set(file.keys())
        header, start = _header(path)
        arrays: dict[str, NDArray[Any]] = {}
        for name in names.intersection((*KINDS, *OPTIONAL)):
            dtype = header[name]["dtype"]
            if not _REAL.fullmatch(dtype):
                raise FileError(
                    f"{path} holds {name} as {dtype}, which is not read. Save them as F32."
                )
            if dtype == "BF16":
                arrays[name] = _bfloat16(path, header[name], start)
            else:
                arrays[name] = file.get_tensor(name)
        texts = file.metadata() or {}
    for name in _TEXTS:
        if name in texts:
            arrays[name] = _names(path, name, texts[name])
    return from_arrays(path, names | arrays.keys(), arrays.__getitem__)


def _names(path: Path, name: str, text: str) -> NDArray[np.str_]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise FileError(
            f"{path} must hold {name} as a JSON list of strings in its metadata; "
            f"it holds {text[:40]!r}."
        )
    return np.array(given, dtype=np.str_)


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The header, which the library has found to be sound, and where the data begin."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(size)), 8 + size


def _bfloat16(path: Path, entry: Mapping[str, Any], start: int) -> NDArray[np.float32]:
    """Float32 of the same values: numpy has no bfloat16, whose bits are a float32's upper half."""
    low, high = entry["data_offsets"]
    with path.open("rb") as file:
        file.seek(start + low)
        upper = np.frombuffer(file.read(high - low), dtype="<u2")
    return (upper.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])


def write(path: Path, scores: Scores, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write numbers as tensors, text as JSON in the metadata."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    texts = {}
    if scores.ids is not None:
        texts["ids"] = json.dumps(scores.ids.tolist(), ensure_ascii=False)
    if scores.classes is not None:
        texts["classes"] = json.dumps(scores.classes, ensure_ascii=False)
    mode = path.stat().st_mode
    try:
        save_file(numbers_of(scores, extra), path, metadata=texts or None)
        # The library may put a file of its own there, which only its owner can read.
        path.chmod(mode)
    except SafetensorError as error:
        # A full disk comes out of the library as an error of its own kind.
        raise OSError(str(error)) from error
