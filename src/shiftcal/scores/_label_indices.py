"""From what a file of labels holds to the class of each of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_labels, class_indices, label_indices
from shiftcal._types import Labels
from shiftcal.errors import InputError
from shiftcal.scores._kinds import in_rows_of_the_file
from shiftcal.scores._label_files import LabelFile
from shiftcal.scores._scores import Scores

NO_LABELS = "there are no labels. Name them 'labels' ('label' in a table)."


def indices_of(given: LabelFile, scores: Scores) -> tuple[Labels, NDArray[np.intp]]:
    """The class indices of all rows of the file that have a label, and which rows these are.

    All of them are looked at, wanted or not: whether text is names or indices is told by all of
    it. Messages count the rows of the file. Classes with names on both sides are matched by name.

    Args:
        given: What the file holds.
        scores: Whose classes the indices are to count.

    Raises:
        InputError: If a label is no class of the scores, or there are none at all.
    """
    if given.labels is None or not len(given.labels):
        raise InputError(NO_LABELS)
    there, rows = given.labelled()
    if there.ndim != 1:
        raise InputError(f"labels must have shape (n,); got shape {there.shape}.")
    found = label_indices(there, given.classes or scores.classes)
    if not (given.classes and scores.classes):
        return _checked(found, rows, scores.k), rows
    own = _checked(found, rows, len(given.classes))
    used = np.unique(own)
    place = np.zeros(len(given.classes), dtype=np.intp)
    place[used] = class_indices([given.classes[i] for i in used], scores.classes)
    return place[own], rows


def _checked(labels: NDArray[Any], rows: NDArray[np.intp], k: int) -> Labels:
    if not len(rows):
        return np.empty(0, dtype=np.intp)
    try:
        return check_labels(labels, n=len(rows), k=k)
    except InputError as error:
        raise InputError(in_rows_of_the_file(rows, str(error))) from error
