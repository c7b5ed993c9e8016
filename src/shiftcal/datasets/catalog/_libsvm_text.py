"""The text format of libsvm: ``label index:value index:value ...`` on each line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.catalog._unpacking import read_at_most, unpacking
from shiftcal.errors import FileError

# The larger file of USPS unpacks to some 25 MB.
_MOST_BYTES = 1 << 28


def read_libsvm(file: Path, *, n_values: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Rows ``(n, n_values)`` and labels ``(n,)`` as written; a value left out is 0.

    Args:
        file: Text, compressed if it ends in ``.bz2`` or ``.gz``.
        n_values: Values of a row; indices count from 1.

    Raises:
        FileError: If it is damaged, too large, or a line is something else.
    """
    with unpacking(file) as stream:
        content = read_at_most(stream, _MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise FileError(f"{file} unpacks to more than {_MOST_BYTES:,} bytes and is not read.")
    lines = [line for line in content.splitlines() if line.strip()]
    if not lines:
        raise FileError(f"{file} holds nothing. Fetch it again.")
    rows = np.zeros((len(lines), n_values), np.float32)
    labels = np.empty(len(lines), np.int64)
    for number, (row, line) in enumerate(zip(rows, lines, strict=True)):
        try:
            labels[number] = _fill(row, line)
        except (ValueError, OverflowError) as error:
            raise FileError(
                f"{file}, row {number + 1}, must be a whole number and then pairs such as 1:-0.5 "
                f"with indices from 1 to {n_values}; got {bytes(line[:40])!r}. Fetch it again."
            ) from error
    return rows, labels


def _fill(row: NDArray[np.float32], line: bytearray) -> int:
    label, *pairs = line.split()
    numbers = np.fromiter(map(float, b" ".join(pairs).replace(b":", b" ").split()), np.float64)
    # A pair of something else than two numbers would shift all that follow.
    if len(numbers) != 2 * len(pairs) or any(pair.count(b":") != 1 for pair in pairs):
        raise ValueError("not pairs")
    places = numbers[::2]
    if not ((places >= 1) & (places <= len(row)) & (places == np.floor(places))).all():
        raise ValueError("no such index")
    row[places.astype(np.intp) - 1] = numbers[1::2]
    return int(label)
