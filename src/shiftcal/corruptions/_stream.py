"""Corrupting more images than fit in memory: a file in, a file out, a piece at a time."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._files import atomic_write
from shiftcal.errors import FileError, InputError

# Bytes of images read, corrupted and written at a time.
PIECE_BYTES = 1 << 25


def open_images(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of an ``.npy`` file, mapped into memory and never changed.

    Raises:
        FileError: If there is no such file or it holds no such array.
    """
    file = Path(path)
    try:
        found = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, OverflowError) as error:
        # What numpy says of other kinds of files is advice to trust them.
        told = error.strerror if isinstance(error, OSError) else None
        reason = told or "it is another kind of file, or damaged"
        raise FileError(
            f"{file} could not be read as an .npy array: {reason}. Pass an array, or the path of "
            "a file written by numpy.save."
        ) from error
    if not isinstance(found, np.ndarray):
        found.close()
        raise FileError(f"{file} holds several arrays. Pass an .npy file, which holds one.")
    return found


def check_out(path: str | os.PathLike[str], images: NDArray[Any]) -> Path:
    """A path for the result that is an ``.npy`` file and not the one that is read."""
    file = Path(path)
    if file.suffix != ".npy":
        raise InputError(f"out must be the path of an .npy file; got {str(path)!r}.")
    source = getattr(images, "filename", None)
    if source is not None and file.exists() and file.samefile(source):
        raise InputError(f"out must not be the file that is read, {file}. Name another.")
    return file


def write_pieces(
    images: NDArray[np.uint8],
    path: Path,
    shape: tuple[int, ...],
    *,
    corrupt: Callable[[NDArray[np.uint8], int], NDArray[np.uint8]],
    step: Callable[[int, int], None],
) -> None:
    """Write ``corrupt(piece, start)`` of all pieces to an ``.npy`` file, whole or not at all.

    Args:
        images: ``(n, ...)``, perhaps mapped into memory.
        path: The file.
        shape: The shape it shall say.
        corrupt: Called with consecutive pieces of ``images`` and where they start.
        step: Told how many images of how many are done after every piece.
    """
    # Grey images have three channels while they are at work.
    size = 3 * int(np.prod(images.shape[1:3])) or 1
    count = max(1, PIECE_BYTES // size)
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(images), count):
            made = corrupt(images[start : start + count], start)
            file.write(np.ascontiguousarray(made).data)
            forget_pages(images)
            step(min(start + count, len(images)), len(images))


def forget_pages(images: NDArray[Any]) -> None:
    """Give back the memory of a mapped file's pages that were read; they can be read again."""
    mapped = getattr(images, "_mmap", None)
    # A private mapping may hold changes that exist nowhere else.
    if isinstance(mapped, mmap.mmap) and getattr(images, "mode", None) in ("r", "r+"):
        advice = getattr(mmap, "MADV_DONTNEED", None)
        if advice is not None:
            mapped.madvise(advice)
