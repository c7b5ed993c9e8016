"""The saved document: JSON with a version and a checksum, arrays in a file beside it."""

from __future__ import annotations

import hashlib
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal._estimator import Estimator
from shiftcal._files import atomic_write, file_to_write
from shiftcal._persistence.coding import Arrays, decode_estimator, encode
from shiftcal.errors import FileError, InputError, ShiftcalError

FORMAT = "shiftcal-estimator"
VERSION = 1
_TRIES = 20


def save(estimator: Estimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to ``path``, whole or not at all.

    Arrays of more than 64 numbers go to ``<stem>.<digest>.safetensors`` in the same folder. The
    name holds the digest of the content, so replacing a saved method never leaves the old JSON
    pointing at new arrays.
    """
    target = file_to_write(path)
    arrays: Arrays = {}
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"shiftcal {version('shiftcal')}",
        "object": encode(estimator, arrays),
        "arrays": _save_arrays(arrays, target),
    }
    document["checksum"] = _checksum(document)
    before = _named_arrays(target)
    with atomic_write(target) as temporary:
        temporary.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", "utf-8")
    now = document["arrays"] and document["arrays"]["file"]
    if before is not None and before.name != now:
        before.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator back.

    Raises:
        FileError: If the file is missing, damaged, of another kind, or from a newer version.
    """
    source = Path(path)
    try:
        document, content = _read_both(source)
        arrays = _parse_arrays(document["arrays"], content, source)
        return decode_estimator(document["object"], arrays)
    except FileError:
        raise
    except ShiftcalError as error:
        raise FileError(f"{source} cannot be used: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise FileError(_damaged(source, f"{type(error).__name__}: {error}")) from error


def _read(source: Path) -> dict[str, Any]:
    try:
        document = json.loads(source.read_text("utf-8"))
    except OSError as error:
        raise FileError(f"{source} could not be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"{source} is not a saved shiftcal method, or it is damaged: not JSON ({error}). "
            "A method is what method.save(path) or `shiftcal fit` writes."
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileError(
            f"{source} is not a saved shiftcal method: it has no format {FORMAT!r}. "
            "Write one with method.save(path) or `shiftcal fit`."
        )
    written = document.get("version")
    if not isinstance(written, int) or written > VERSION:
        raise FileError(
            f"{source} has format version {written!r}, written by {document.get('written_by')}; "
            f"this is shiftcal {version('shiftcal')}, which reads up to version {VERSION}. "
            "Upgrade shiftcal to read it."
        )
    if document.pop("checksum", None) != _checksum(document):
        raise FileError(_damaged(source, "its checksum does not fit its content"))
    return document


def _damaged(source: Path, why: str) -> str:
    return f"{source} is damaged: {why}. Take it from a backup, or fit and save the method again."


def _checksum(document: dict[str, Any]) -> str:
    content = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def _named_arrays(target: Path) -> Path | None:
    """The arrays file of the saved method that ``target`` is about to replace."""
    try:
        name = _read(target)["arrays"]["file"]
    except (FileError, KeyError, TypeError):
        return None
    return target.with_name(name) if _is_sidecar(name, target) else None


def _is_sidecar(name: object, target: Path) -> bool:
    """Whether ``name`` is one that :func:`save` would have given, and so in the same folder."""
    return (
        isinstance(name, str)
        and Path(name).name == name
        and name.startswith(f"{target.stem}.")
        and name.endswith(".safetensors")
    )


def _save_arrays(arrays: Arrays, target: Path) -> dict[str, str] | None:
    if not arrays:
        return None
    from safetensors.numpy import save as to_bytes

    content = to_bytes({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    digest = hashlib.sha256(content).hexdigest()
    name = f"{target.stem}.{digest[:12]}.safetensors"
    with atomic_write(target.with_name(name)) as temporary:
        temporary.write_bytes(content)
    return {"file": name, "sha256": digest}


def _read_both(source: Path) -> tuple[dict[str, Any], bytes]:
    """The document and the bytes of its arrays file, which belong together.

    Somebody may replace the method between the two looks; then the arrays file is gone and the
    document names another, so both are read again.
    """
    for last in [False] * _TRIES + [True]:
        document = _read(source)
        entry = document["arrays"]
        if entry is None:
            return document, b""
        if not _is_sidecar(entry["file"], source):
            raise InputError(
                f"its arrays file {entry['file']!r} must lie beside it under its own name"
            )
        file = source.with_name(entry["file"])
        try:
            return document, file.read_bytes()
        except OSError as error:
            if last or not isinstance(error, FileNotFoundError):
                raise InputError(
                    f"its arrays file {file} could not be read ({error.strerror or error}); "
                    "the two files belong together"
                ) from error
    raise AssertionError


def _parse_arrays(entry: Any, content: bytes, source: Path) -> Arrays:
    if entry is None:
        return {}
    from safetensors.numpy import load as from_bytes

    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        file = source.with_name(entry["file"])
        raise InputError(f"its arrays file {file} is damaged or belongs to another method")
    return from_bytes(content)
