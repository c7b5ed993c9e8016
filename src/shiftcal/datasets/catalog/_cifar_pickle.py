"""The pickles that CIFAR's python batches are, read without Python's own pickle.

A pickle is a program. This reader knows the few operations that a batch consists of and makes
nothing but numbers, text, lists, tuples and dicts; a name in the pickle is never looked up, but
becomes a record of what was asked for, and only the names a batch needs are let through.
"""

from __future__ import annotations

import pickletools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.catalog._pickle_steps import (
    EMPTY,
    ENCODE,
    IGNORED,
    STEPS,
    VALUES,
    Machine,
    Made,
)
from shiftcal.errors import FileError, ShiftcalError

# A batch of 10,000 images has 31 MB.
_MOST_BYTES = 1 << 28
_RECONSTRUCT = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")
_DTYPE = "numpy dtype"
_NAMES = frozenset({*_RECONSTRUCT, _DTYPE, ENCODE, "numpy ndarray"})


def read_pickle(file: Path) -> tuple[dict[str, Any], bytes]:
    """The dict of a batch with its keys as text, and all bytes of the file.

    Raises:
        FileError: If there is no such file, it is damaged, or it asks for more than a batch needs.
    """
    content = _content(file)
    try:
        found = _run(file, content)
    except ShiftcalError:
        raise
    except Exception as error:  # a damaged pickle raises anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FileError(
            f"{file} could not be read as a batch of CIFAR: it is damaged, cut short, or something "
            f"else ({reason}). Unpack the archive again."
        ) from error
    if not isinstance(found, dict):
        raise FileError(f"{file} is not a batch of CIFAR: it does not hold a dict.")
    return {_text(key): value for key, value in found.items()}, content


def as_pixels(file: Path, found: object) -> tuple[NDArray[np.uint8], bytes]:
    """The array ``(n, 3072)`` that a batch holds as ``data``, and the bytes it was stored as.

    Raises:
        FileError: If it is something else.
    """
    made = isinstance(found, Made) and found.name in _RECONSTRUCT
    state: Any = found.state if made else None  # type: ignore[attr-defined]
    try:
        _, shape, dtype, fortran, raw = state
        n, width = shape
        sound = (
            isinstance(dtype, Made)
            and dtype.name == _DTYPE
            and _text(dtype.args[0]) in ("u1", "|u1", "uint8")
            and not fortran
            and isinstance(raw, bytes)
            and type(width) is type(n) is int
            and width == 3072
            and 0 < n * width == len(raw)
        )
    except (TypeError, ValueError, IndexError):
        sound = False
    if not sound:
        raise FileError(
            f"{file} must hold pixels as data, uint8 of shape (n, 3072); it does not, or they are "
            "cut short. Unpack the archive again."
        )
    return np.frombuffer(raw, np.uint8).reshape(n, width), raw


def _run(file: Path, content: bytes) -> Any:
    machine = Machine()
    for operation, argument, _ in pickletools.genops(content):
        name = operation.name
        if name in VALUES:
            machine.stack.append(VALUES[name](argument))
        elif name in EMPTY:
            machine.stack.append(EMPTY[name]())
        elif name in STEPS:
            asked = STEPS[name](machine, argument)
            if asked is not None and asked not in _NAMES:
                raise FileError(
                    f"{file} asks for {asked.replace(' ', '.')}, which no batch of CIFAR needs. It "
                    "was not run, and the file is not read: do not trust where it comes from."
                )
        elif name not in IGNORED:
            raise FileError(
                f"{file} asks for {name} of pickle, which no batch of CIFAR needs. It is not read: "
                "do not trust where it comes from."
            )
    (result,) = machine.stack
    return result


def _content(file: Path) -> bytes:
    if not file.is_file():
        raise FileError(f"{file} is missing or not a file. Unpack the archive again.")
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise FileError(f"{file} is larger than any batch of CIFAR, which have 31 MB.")
        return file.read_bytes()
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error


def _text(value: object) -> str:
    """Text of text or bytes; nothing of anything else, which may be nested without end."""
    if isinstance(value, bytes):
        return value.decode("latin1")
    return value if isinstance(value, str) else ""
