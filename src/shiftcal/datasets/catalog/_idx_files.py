"""The idx format of MNIST: a magic number, sizes as big-endian 32-bit numbers, then the bytes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.catalog._unpacking import read_at_most, unpacking
from shiftcal.errors import FileError

# What is unpacked to memory. MNIST is 47 MB; the largest set in this format, 560 MB.
_MOST_BYTES = 1 << 30
_UNSIGNED_BYTES = 8


def read_idx(file: Path, *, item: tuple[int, ...]) -> NDArray[np.uint8]:
    """The items of an idx file, ``(n, *item)``.

    They are mapped from the file, not read, unless it is compressed (``.gz``); then they are
    unpacked to memory.

    Args:
        file: The file, of unsigned bytes.
        item: Shape of one item: ``(28, 28)`` for the images of MNIST, ``()`` for labels.

    Raises:
        FileError: If it is of another kind or shape, or does not hold what its header says.
    """
    header = 8 + 4 * len(item)
    with unpacking(file) as stream:
        n = _number_of_items(file, bytes(read_at_most(stream, header)), item)
        promised = n * math.prod(item)
        if file.suffix != ".gz":
            _check_length(file, file.stat().st_size - header, promised)
            return np.memmap(file, np.uint8, "r", header, (n, *item))
        if promised > _MOST_BYTES:
            raise FileError(
                f"{file} says that it holds {promised:,} bytes; more than {_MOST_BYTES:,} are not "
                "unpacked to memory. Unpack it on disk if that is true."
            )
        content = read_at_most(stream, promised + 1)
    _check_length(file, len(content), promised)
    return np.frombuffer(content, np.uint8).reshape(n, *item)


def _number_of_items(file: Path, head: bytes, item: tuple[int, ...]) -> int:
    magic = bytes((0, 0, _UNSIGNED_BYTES, 1 + len(item)))
    if len(head) < 8 + 4 * len(item) or not head.startswith(magic):
        raise FileError(
            f"{file} must be an idx file of unsigned bytes in {1 + len(item)} dimensions, "
            f"beginning with the bytes {magic.hex(' ')}; got {head[:4].hex(' ') or 'nothing'}. "
            "Fetch it again."
        )
    n, *sizes = (int(size) for size in np.frombuffer(head, ">u4", offset=4))
    if tuple(sizes) != item:
        raise FileError(f"{file} must hold items of shape {item}; got {tuple(sizes)}.")
    if n == 0:
        raise FileError(f"{file} holds nothing: its header says so. Fetch it again.")
    return n


def _check_length(file: Path, held: int, promised: int) -> None:
    if held < promised:
        raise FileError(
            f"{file} is cut short: its header promises {promised:,} bytes and {held:,} follow. "
            "Fetch it again."
        )
    if held > promised:
        raise FileError(
            f"{file} holds more than the {promised:,} bytes that its header promises; it is not "
            "what it says. Fetch it again."
        )
