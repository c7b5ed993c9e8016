"""What a file of labels holds, by its format."""

from __future__ import annotations

import csv as table
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import as_text, check_classes
from shiftcal.errors import FileError, InputError
from shiftcal.scores import npy, npz, parquet
from shiftcal.scores._columns import ID, LABEL, PREFIX, layout_of, refuse_repeated
from shiftcal.scores._labels import is_empty, present, text_of
from shiftcal.scores._opening import parsing
from shiftcal.scores._read import read_scores


@dataclass(frozen=True)
class LabelFile:
    """Class indices or names, and maybe whose they are.

    Attributes:
        labels: Numbers or text ``(n,)``; cells of a table, of which some may be empty; or
            ``None`` if there are none.
        ids: Names of the samples ``(n,)``.
        classes: Names of the classes that indices stand for.
    """

    labels: NDArray[Any] | Sequence[Any] | None
    ids: NDArray[np.str_] | None = None
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.ids is None or self.labels is None or len(self.ids) == len(self.labels):
            return
        raise InputError(
            f"there must be an id per label; {len(self.ids)} ids, {len(self.labels)} labels."
        )

    def complete(self) -> NDArray[Any] | None:
        """The labels, one for every row, or ``None``.

        Raises:
            InputError: If some cells are empty and some are not.
        """
        given = self.labels
        return given if given is None or isinstance(given, np.ndarray) else present(given)

    def labelled(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The labels there are, and the rows that have them; a cell that is empty is none."""
        given = self.labels
        if given is None or isinstance(given, np.ndarray):
            labels = np.empty(0) if given is None else given
            return labels, np.arange(len(labels))
        full = [row for row, cell in enumerate(given) if not is_empty(cell)]
        return np.array([given[row] for row in full]), np.array(full, dtype=np.intp)


def read_label_file(path: Path) -> LabelFile:
    """What the file holds; its suffix says the format, any other is a scores file's."""
    return _READERS.get(path.suffix.lower(), _from_scores)(path)


def _from_npy(path: Path) -> LabelFile:
    return LabelFile(_vector(npy.read_array(path), "labels"))


def _from_npz(path: Path) -> LabelFile:
    found = {name: npz.read_member(path, name) for name in ("labels", "ids", "classes")}
    parts = {name: None if x is None else _vector(x, name) for name, x in found.items()}
    ids, classes = parts["ids"], parts["classes"]
    return LabelFile(
        parts["labels"],
        None if ids is None else as_text(ids, "ids"),
        None if classes is None else check_classes(as_text(classes, "classes"), k=len(classes)),
    )


def _vector(part: NDArray[Any], name: str) -> NDArray[Any]:
    if part.ndim != 1:
        raise InputError(
            f"{name} must have shape (n,); got shape {part.shape}. Save them as one list."
        )
    return part


def _from_csv(path: Path) -> LabelFile:
    with (
        parsing(path, "comma-separated text in UTF-8", (table.Error, UnicodeError)),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        rows = table.reader(file, strict=True, skipinitialspace=True)
        header = next(filter(None, rows), [])
        refuse_repeated(path, header, (LABEL, ID))
        given = _from_cells(_columns(path, header, rows))
    if any(name.startswith((PREFIX["logits"], PREFIX["probabilities"])) for name in header):
        # Indices in a table of scores count its own columns, not those of the scores judged.
        return replace(given, classes=layout_of(path, header).classes)
    return given


def _columns(path: Path, header: Sequence[str], rows: Any) -> dict[str, list[str]]:
    """The cells of the labels and ids, empty where a row is too short to have them."""
    columns: dict[str, list[str]] = {name: [] for name in (LABEL, ID) if name in header}
    at = [(header.index(name), cells) for name, cells in columns.items()]
    for row in filter(None, rows):
        if len(row) > len(header):
            raise FileError(
                f"{path}, line {rows.line_num}: a row must have no more than {len(header)} cells, "
                f"as the first line has; this one has {len(row)}. A comma may stand in an "
                "unquoted cell: put it in quotes."
            )
        for i, cells in at:
            cells.append(row[i] if i < len(row) else "")
    return columns


def _from_parquet(path: Path) -> LabelFile:
    cells = parquet.read_cells(path)
    return _from_scores(path) if cells is None else _from_cells(cells)


def _from_cells(cells: Mapping[str, list[Any]]) -> LabelFile:
    ids = np.array(text_of(cells[ID]), dtype=np.str_) if ID in cells else None
    return LabelFile(cells.get(LABEL), ids)


def _from_scores(path: Path) -> LabelFile:
    scores = read_scores(path)
    return LabelFile(scores.labels, scores.ids, scores.classes)


_READERS = {".npy": _from_npy, ".npz": _from_npz, ".csv": _from_csv, ".parquet": _from_parquet}
