"""Labels in a file of their own."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError

_COLUMN = "label"


def read_labels(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels ``(n,)`` in the order of the images: class indices, or names.

    Args:
        path: ``.npy``, an array; ``.csv``, a table with a first line and a column ``label``;
            ``.txt``, one label a line.

    Raises:
        FileError: If the file is not there, is damaged, or is none of these.
    """
    file = Path(path)
    kind = file.suffix.lower()
    if kind not in _READERS:
        raise FileError(
            f"{file} must be a file of labels, .npy, .csv or .txt; it ends in {kind!r}."
        )
    try:
        found = _READERS[kind](file)
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
    except (ValueError, csv.Error, EOFError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file} could not be read as labels: {error}.") from error
    if found.ndim != 1 or not found.size:
        raise FileError(f"{file} must hold labels in a row, shape (n,); got shape {found.shape}.")
    return found


def _from_npy(file: Path) -> NDArray[Any]:
    return np.load(file, allow_pickle=False)


def _from_csv(file: Path) -> NDArray[Any]:
    with file.open(encoding="utf-8-sig", newline="") as opened:
        rows = csv.DictReader(opened, strict=True, skipinitialspace=True)
        if _COLUMN not in (rows.fieldnames or ()):
            raise FileError(
                f"{file} must have a column {_COLUMN!r}; its first line is "
                f"{', '.join(rows.fieldnames or ())!r:.80}."
            )
        cells = [row[_COLUMN] for row in rows]
    for number, cell in enumerate(cells):
        if not cell:
            raise FileError(f"{file}: row {number + 1} has no {_COLUMN}; every image needs one.")
    return _plain(cells)


def _from_txt(file: Path) -> NDArray[Any]:
    lines = [line.strip() for line in file.read_text("utf-8-sig").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    if "" in lines:
        raise FileError(f"{file}: line {lines.index('') + 1} is empty; every image needs a label.")
    return _plain(lines)


def _plain(cells: list[str]) -> NDArray[Any]:
    """Text stays text: whether it is a number is for the names of the classes to say."""
    return np.array(cells, dtype=np.str_)


_READERS = {".npy": _from_npy, ".csv": _from_csv, ".txt": _from_txt}
