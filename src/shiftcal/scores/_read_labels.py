"""Labels that came later, in a file of their own."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_labels, label_indices
from shiftcal._types import Labels
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.scores._label_files import LabelFile, read_label_file
from shiftcal.scores._opening import find
from shiftcal.scores._scores import Scores


def read_labels(path: str | os.PathLike[str], scores: Scores) -> Labels:
    """The labels of the rows of ``scores``, from another file.

    A ``.npy`` file is one array of labels. An ``.npz`` file holds ``labels`` and may hold ``ids``
    and ``classes``; a ``.csv`` or ``.parquet`` table has a column ``label`` and may have ``id``;
    any other file is a scores file with labels. Rows are joined by ids where both sides have
    them, and by their order otherwise; if only one side has ids, that is an
    :class:`~shiftcal.errors.InputWarning`. Class names are looked up among those of ``scores``.

    Args:
        path: The file.
        scores: The rows that need labels.

    Raises:
        FileError: If the file cannot be read, or a row finds no label in it.
    """
    file = find(path)
    with _naming(file):
        given = read_label_file(file)
        if scores.ids is not None:
            given = given.without_empty()
        labels = _labels_for(scores, given)
    if (given.ids is None) != (scores.ids is None):
        have = "no ids, the scores have" if given.ids is None else "ids, the scores have none"
        warnings.warn(
            f"labels of {file} were joined by order: {file.name} has {have}. "
            "Give both files ids, or neither, if the order may differ.",
            InputWarning,
            stacklevel=2,
        )
    return labels


def read_labelled(path: str | os.PathLike[str], scores: Scores) -> Scores:
    """The rows of ``scores`` that have a label in another file, with their labels.

    For labels that have arrived in part. Rows keep their order; an empty cell of a table is no
    label. Both sides must have ids.

    Args:
        path: The file, as for :func:`read_labels`.
        scores: The rows to choose from.

    Raises:
        FileError: If the file cannot be read, ids are lacking, or no row has a label in it.
    """
    file = find(path)
    with _naming(file):
        given = read_label_file(file).without_empty()
        if given.ids is None or scores.ids is None:
            whose = "the labels" if given.ids is None else "the scores"
            raise InputError(
                f"rows that have a label can be told by ids only, and {whose} have none. "
                "Add ids, or give a label for every row."
            )
        kept = np.flatnonzero(np.isin(scores.ids, given.ids))
        if not len(kept):
            raise InputError(
                f"no row of the scores has a label in it: theirs are ids such as "
                f"{str(scores.ids[0])!r}. Check that both files speak of the same samples."
            )
        rows = replace(
            scores,
            values=scores.values[kept],
            labels=None,
            features=None if scores.features is None else scores.features[kept],
            ids=scores.ids[kept],
        )
        return replace(rows, labels=_labels_for(rows, given))


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except InputError as error:
        raise FileError(f"{file}: {error}") from error


def _labels_for(scores: Scores, given: LabelFile) -> Labels:
    labels = given.complete()
    if labels is None:
        raise InputError("there are no labels. Name them 'labels' ('label' in a table).")
    if labels.ndim != 1:
        raise InputError(f"labels must have shape (n,); got shape {labels.shape}.")
    if given.classes and scores.classes:
        names = np.array(given.classes, dtype=np.str_)
        labels = names[
            check_labels(label_indices(labels, given.classes), n=len(labels), k=len(names))
        ]
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
    lacking = [name for name in wanted.tolist() if name not in position]
    if lacking:
        raise InputError(
            f"{len(lacking)} of {len(wanted)} rows have no label here, the first {lacking[0]!r}. "
            "Add them, or judge only the rows that have one "
            "(evaluate --labelled-only, read_labelled in Python)."
        )
    return np.array([position[name] for name in wanted.tolist()], dtype=np.intp)
