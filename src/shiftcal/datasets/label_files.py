"""Labels in a file of their own."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets._label_join import joined
from shiftcal.datasets._npz_member import member_of, read_member
from shiftcal.datasets.base import ImageSet
from shiftcal.errors import FileError, MissingData

_COLUMN = "label"
# Columns that say which image a label is of; the first that is there and fits counts.
_NAMES = ("file", "path", "id")


def read_labels(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels ``(n,)`` in the order of the file: class indices, or names.

    Args:
        path: ``.npy``, an array; ``FILE.npz:KEY``, an array of an ``.npz`` file, ``labels`` if no
            key is said; ``.csv``, a table with a first line and a column ``label``; ``.txt``, one
            label a line.

    Raises:
        FileError: If the file is not there, is damaged, or is none of these.
    """
    return _read(path)[0]


def labels_for(images: ImageSet, path: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels ``(n,)`` of these images, one each.

    A table with a column ``file``, ``path`` or ``id`` says which image each label is of, and may
    have rows of others. Other files have a label for every image, in order.

    Args:
        images: The images.
        path: As for :func:`read_labels`.

    Raises:
        FileError: If the file cannot be read, or does not have the label of every image.
    """
    labels, names = _read(path)
    if names:
        return labels[joined(images, names, labels, source=os.fspath(path))]
    if len(labels) != len(images):
        raise FileError(
            f"{path} must have a label for every image of {images.name}, {len(images):,} in "
            f"order; it has {len(labels):,}. A column 'file' in a .csv says whose they are."
        )
    return labels


def _read(path: str | os.PathLike[str]) -> tuple[NDArray[Any], dict[str, list[str]]]:
    """The labels, and the columns that say whose they are."""
    file, key = member_of(path)
    names: dict[str, list[str]] = {}
    if file.suffix.lower() == ".npz":
        found = read_member(file, key, default="labels")
    else:
        found, names = _parsed(file)
    if found.ndim != 1 or not found.size:
        raise FileError(f"{path} must hold labels in a row, shape (n,); got shape {found.shape}.")
    return found, names


def _parsed(file: Path) -> tuple[NDArray[Any], dict[str, list[str]]]:
    kind = file.suffix.lower()
    if kind not in _READERS:
        raise FileError(
            f"{file} must be a file of labels, .npy, .npz, .csv or .txt; it ends in {kind!r}."
        )
    try:
        return _READERS[kind](file)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise (MissingData if missing else FileError)(
            f"{file} could not be read: {error.strerror or error}."
        ) from error
    except (ValueError, csv.Error, EOFError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file} could not be read as labels: {error}.") from error


def _from_npy(file: Path) -> tuple[NDArray[Any], dict[str, list[str]]]:
    return np.load(file, allow_pickle=False), {}


def _from_csv(file: Path) -> tuple[NDArray[Any], dict[str, list[str]]]:
    with file.open(encoding="utf-8-sig", newline="") as opened:
        rows = csv.DictReader(opened, strict=True, skipinitialspace=True)
        header = list(rows.fieldnames or ())
        if _COLUMN not in header:
            raise FileError(
                f"{file} must have a column {_COLUMN!r}; its first line is "
                f"{', '.join(header)!r:.80}."
            )
        kept: dict[str, list[str]] = {name: [] for name in (_COLUMN, *_NAMES) if name in header}
        for row in rows:
            for name, cells in kept.items():
                cells.append(row[name] or "")
    cells = kept.pop(_COLUMN)
    for number, cell in enumerate(cells):
        if not cell:
            raise FileError(f"{file}: row {number + 1} has no {_COLUMN}; every image needs one.")
    return _plain(cells), kept


def _from_txt(file: Path) -> tuple[NDArray[Any], dict[str, list[str]]]:
    lines = [line.strip() for line in file.read_text("utf-8-sig").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    if "" in lines:
        raise FileError(f"{file}: line {lines.index('') + 1} is empty; every image needs a label.")
    return _plain(lines), {}


def _plain(cells: list[str]) -> NDArray[Any]:
    """Text stays text: whether it is a number is for the names of the classes to say."""
    return np.array(cells, dtype=np.str_)


_READERS = {".npy": _from_npy, ".csv": _from_csv, ".txt": _from_txt}
