"""Arrays in ``.npy`` files: the labels read, the images mapped, some of the rows if that is all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError, MissingData

_MAGIC = b"\x93NUMPY"
# No set holds smaller images.
_LEAST = 8


def map_array(file: Path) -> np.memmap[Any, Any]:
    """What an ``.npy`` file holds, mapped into memory; nothing in it is ever unpickled.

    Raises:
        MissingData: If there is no such file.
        FileError: If it is of another kind, or cut short.
    """
    _check_magic(file)
    try:
        found = np.load(file, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a hostile header raises what the parser of Python likes
        reason = " ".join(str(error).split())[:200]
        raise FileError(
            f"{file} could not be read as an .npy array: it is damaged, cut short, or holds Python "
            f"objects ({reason}). Fetch or write it again."
        ) from error
    assert isinstance(found, np.memmap)
    return found


def map_images(file: Path) -> np.memmap[Any, Any]:
    """Images ``(n, height, width, 3)`` of an ``.npy`` file, or without the last axis if grey.

    Raises:
        FileError: As for :func:`map_array`, and if they are not uint8 of such a shape.
    """
    found = map_array(file)
    shaped = found.ndim == 3 or (found.ndim == 4 and found.shape[3] == 3)
    if found.dtype != np.uint8 or not shaped or not len(found) or min(found.shape[1:3]) < _LEAST:
        raise FileError(
            f"{file} must hold images, uint8 of shape (n, height, width, 3) with sides of at least "
            f"{_LEAST}; it holds {found.dtype} of shape {found.shape}. Fetch or write it again."
        )
    if not found.flags.c_contiguous:
        raise FileError(
            f"{file} must hold one image after the other, in C order; it is in Fortran order. "
            "Write it again with np.ascontiguousarray(images)."
        )
    return found


def some_rows(images: np.memmap[Any, Any], start: int, stop: int) -> np.memmap[Any, Any]:
    """Rows of a mapped file as a mapping of their own, which is not sent to other processes."""
    assert images.filename is not None
    row = images[:1].nbytes
    shape = (stop - start, *images.shape[1:])
    return np.memmap(images.filename, np.uint8, "r", images.offset + start * row, shape)


def read_labels(file: Path, *, k: int) -> NDArray[np.intp]:
    """Class indices ``(n,)`` of an ``.npy`` file.

    Raises:
        FileError: If there is no such file (labels are not missed alone: it is the images that
            then have none), it is damaged, or not all are whole numbers from 0 to ``k - 1``.
    """
    if not file.exists():
        raise FileError(f"{file} is missing. Fetch or write it again.")
    found = map_array(file)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not len(found):
        raise FileError(
            f"{file} must hold one whole number an image; it holds {found.dtype} of shape "
            f"{found.shape}. Fetch or write it again."
        )
    low, high = int(found.min()), int(found.max())
    if low < 0 or high >= k:
        raise FileError(
            f"{file} must hold class indices from 0 to {k - 1}; it holds {low} to {high}. "
            "It belongs to another data set."
        )
    return np.array(found, np.intp)


def _check_magic(file: Path) -> None:
    if not file.exists():
        raise MissingData(f"{file} is missing. Fetch or write it again.")
    if not file.is_file():  # a pipe would be waited for
        raise FileError(f"{file} is not a file.")
    try:
        with file.open("rb") as stream:
            head = stream.read(len(_MAGIC))
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
    if head != _MAGIC:
        raise FileError(
            f"{file} is not an .npy array: it begins with the bytes {head!r}. Fetch or write it "
            "again."
        )
