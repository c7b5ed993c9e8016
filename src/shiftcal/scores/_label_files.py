"""What a file of labels holds, by its format."""

from __future__ import annotations

import csv as table
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import as_text
from shiftcal.scores import npy, npz, parquet
from shiftcal.scores._columns import ID, LABEL, PREFIX, layout_of
from shiftcal.scores._labels import is_empty, present
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

    def complete(self) -> NDArray[Any] | None:
        """The labels, one for every row, or ``None``.

        Raises:
            InputError: If some cells are empty and some are not.
        """
        given = self.labels
        return given if given is None or isinstance(given, np.ndarray) else present(given)

    def without_empty(self) -> LabelFile:
        """The rows that have a label; all of them where there are no ids to tell them by."""
        given = self.labels
        if given is None or isinstance(given, np.ndarray) or self.ids is None:
            return self
        full = [row for row, cell in enumerate(given) if not is_empty(cell)]
        return LabelFile([given[row] for row in full], self.ids[full], self.classes)


def read_label_file(path: Path) -> LabelFile:
    """What the file holds; its suffix says the format, any other is a scores file's."""
    return _READERS.get(path.suffix.lower(), _from_scores)(path)


def _from_npy(path: Path) -> LabelFile:
    return LabelFile(npy.read_array(path))


def _from_npz(path: Path) -> LabelFile:
    ids, classes = npz.read_member(path, "ids"), npz.read_member(path, "classes")
    return LabelFile(
        npz.read_member(path, "labels"),
        None if ids is None else as_text(ids, "ids"),
        None if classes is None else tuple(as_text(classes, "classes").tolist()),
    )


def _from_csv(path: Path) -> LabelFile:
    with (
        parsing(path, "comma-separated text in UTF-8", (table.Error, UnicodeError)),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        rows = list(table.DictReader(file, restval="", strict=True, skipinitialspace=True))
    names = [name for name in (LABEL, ID) if rows and name in rows[0]]
    given = _from_cells({name: [row[name] for row in rows] for name in names})
    header = list(rows[0]) if rows else []
    if any(name.startswith((PREFIX["logits"], PREFIX["probabilities"])) for name in header):
        # Indices in a table of scores count its own columns, not those of the scores judged.
        return replace(given, classes=layout_of(path, header).classes)
    return given


def _from_parquet(path: Path) -> LabelFile:
    cells = parquet.read_cells(path)
    return _from_scores(path) if cells is None else _from_cells(cells)


def _from_cells(cells: Mapping[str, list[Any]]) -> LabelFile:
    ids = ["" if cell is None else str(cell) for cell in cells.get(ID, ())]
    return LabelFile(cells.get(LABEL), np.array(ids, dtype=np.str_) if ID in cells else None)


def _from_scores(path: Path) -> LabelFile:
    scores = read_scores(path)
    return LabelFile(scores.labels, scores.ids, scores.classes)


_READERS = {".npy": _from_npy, ".npz": _from_npz, ".csv": _from_csv, ".parquet": _from_parquet}
