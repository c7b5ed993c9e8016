"""Labels that came later, in a file of their own."""

from __future__ import annotations

import csv as table
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_labels
from shiftcal._types import Labels
from shiftcal.errors import FileError, InputError
from shiftcal.scores import npy, npz
from shiftcal.scores._labels import label_indices, present
from shiftcal.scores._opening import find, parsing
from shiftcal.scores._read import read_scores
from shiftcal.scores._scores import Scores, as_text


@dataclass(frozen=True)
class _Given:
    """What a file of labels holds: class indices or names, and maybe whose they are."""

    labels: NDArray[Any] | None
    ids: NDArray[np.str_] | None = None
    classes: tuple[str, ...] | None = None


def read_labels(path: str | os.PathLike[str], scores: Scores) -> Labels:
    """The labels of the rows of ``scores``, from another file.

    A ``.npy`` file is one array of labels. An ``.npz`` file holds ``labels`` and may hold ``ids``
    and ``classes``; a ``.csv`` table has a column ``label`` and may have ``id``; any other file
    is a scores file with labels. Rows are joined by ids where both sides have them, and by their
    order otherwise. Class names are looked up among those of ``scores``.

    Args:
        path: The file.
        scores: The rows that need labels.

    Raises:
        FileError: If the file cannot be read, or a row finds no label in it.
    """
    file = find(path)
    try:
        given = _READERS.get(file.suffix.lower(), _from_scores)(file)
        return _labels_for(scores, given)
    except FileError:
        raise
    except InputError as error:
        raise FileError(f"{file}: {error}") from error


def _labels_for(scores: Scores, given: _Given) -> Labels:
    labels = given.labels
    if labels is None:
        raise InputError("there are no labels. Name them 'labels' ('label' in a table).")
    if labels.ndim != 1:
        raise InputError(f"labels must have shape (n,); got shape {labels.shape}.")
    if given.classes and scores.classes and labels.dtype.kind not in "US":
        names = np.array(given.classes, dtype=np.str_)
        labels = names[check_labels(labels, n=len(labels), k=len(names))]
    if given.ids is not None and scores.ids is not None:
        if len(given.ids) != len(labels):
            raise InputError(
                f"there must be an id per label; {len(given.ids)} ids, {len(labels)} labels."
            )
        labels = labels[_rows(given.ids, scores.ids)]
    indices = label_indices(labels, scores.classes or given.classes)
    return check_labels(indices, n=scores.n, k=scores.k)


def _rows(ids: NDArray[np.str_], wanted: NDArray[np.str_]) -> NDArray[np.intp]:
    position = {name: row for row, name in enumerate(ids.tolist())}
    if len(position) < len(ids):
        raise InputError("ids must differ from one another where labels are joined by them.")
    for name in wanted.tolist():
        if name not in position:
            raise InputError(
                f"there must be a label for every id of the scores; {name!r} has none."
            )
    return np.array([position[name] for name in wanted.tolist()], dtype=np.intp)


def _from_npy(path: Path) -> _Given:
    return _Given(npy.read_array(path))


def _from_npz(path: Path) -> _Given:
    ids, classes = npz.read_member(path, "ids"), npz.read_member(path, "classes")
    return _Given(
        npz.read_member(path, "labels"),
        None if ids is None else as_text(ids, "ids"),
        None if classes is None else tuple(as_text(classes, "classes").tolist()),
    )


def _from_csv(path: Path) -> _Given:
    with (
        parsing(path, "comma-separated text in UTF-8", (table.Error, UnicodeError)),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        rows = list(table.DictReader(file, restval="", strict=True, skipinitialspace=True))
    if not rows or "label" not in rows[0]:
        return _Given(None)
    labels = present([row["label"] for row in rows])
    return _Given(labels, np.array([row["id"] for row in rows]) if "id" in rows[0] else None)


def _from_scores(path: Path) -> _Given:
    scores = read_scores(path)
    return _Given(scores.labels, scores.ids, scores.classes)


_READERS = {".npy": _from_npy, ".npz": _from_npz, ".csv": _from_csv}
