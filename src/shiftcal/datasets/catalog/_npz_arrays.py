"""Arrays of numbers in ``.npz`` files that strangers may have written."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError

# What is unpacked to memory of one array.
_MOST_BYTES = 1 << 28
_DAMAGED = (OSError, ValueError, EOFError, OverflowError, zipfile.BadZipFile, zlib.error)
_OTHER = (NotImplementedError, RuntimeError)  # compressed in a way unknown here, or encrypted


def read_npz(file: Path, key: str, *, item: tuple[int, ...], kinds: str) -> NDArray[Any]:
    """One array ``(n, *item)`` of an ``.npz`` file.

    Args:
        file: The file. Pickled objects are never loaded.
        key: Name of the array.
        item: Shape of one row.
        kinds: Kinds of dtype it may have, such as ``"f"`` or ``"iu"``.

    Raises:
        FileError: If it is damaged, missing, too large, or of another shape or kind.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if f"{key}.npy" not in names:
                held = ", ".join(name.removesuffix(".npy")[:40] for name in names[:8])
                raise FileError(f"{file} must hold an array {key!r}; it holds {held or 'none'}.")
            told = archive.getinfo(f"{key}.npy")
            with archive.open(told) as stream:
                shape, dtype = _header(stream)
            _check_rows(file, shape, dtype, item=item, kinds=kinds)
            promised = math.prod(shape) * dtype.itemsize
            if promised > min(told.file_size, _MOST_BYTES):
                raise FileError(
                    f"{file}: the header of {key!r} promises {promised:,} bytes; {told.file_size:,}"
                    f" are there, and at most {_MOST_BYTES:,} are read. Fetch it again."
                )
            with archive.open(told) as stream:
                return np.lib.format.read_array(stream, allow_pickle=False)
    except FileError:
        raise
    except (*_DAMAGED, *_OTHER) as error:
        raise FileError(_damaged(file, error)) from error


def _check_rows(
    file: Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    item: tuple[int, ...],
    kinds: str,
) -> None:
    if len(shape) != 1 + len(item) or shape[1:] != item or shape[0] < 1 or dtype.kind not in kinds:
        sides = ", ".join(("n", *map(str, item)))
        raise FileError(
            f"{file} must hold an array of shape ({sides}) and dtype kind "
            f"{' or '.join(map(repr, kinds))}; got shape {shape} and dtype {dtype}."
        )


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(stream)
    return shape, dtype


def _damaged(file: Path, error: Exception) -> str:
    reason = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
    return f"{file} cannot be read: it is damaged, cut short or something else ({reason})."
