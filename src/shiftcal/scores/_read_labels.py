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

from shiftcal._checks import check_labels
from shiftcal._types import Labels
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.scores._label_files import LabelFile, read_label_file
from shiftcal.scores._label_indices import NO_LABELS, indices_of
from shiftcal.scores._opening import find
from shiftcal.scores._scores import Scores


def read_labels(path: str | os.PathLike[str], scores: Scores) -> Labels:
    """The labels of the rows of ``scores``, from another file.

    A ``.npy`` file is one array of labels. An ``.npz`` file holds ``labels`` and may hold ``ids``
    and ``classes``; a ``.csv`` or ``.parquet`` table has a column ``label`` and may have ``id``;
    any other file is a scores file with labels. Rows are joined by ids where both sides have
    them, and by their order otherwise; if only one side has ids, that is an
    :class:`~shiftcal.errors.InputWarning`. Class names are looked up among those of ``scores``;
    whether labels are names or indices is told by all labels of the file.

    Args:
        path: The file.
        scores: The rows that need labels.

    Raises:
        FileError: If the file cannot be read, a row finds no label in it, or rows that are to be
            joined by ids have an empty one.
    """
    file = find(path)
    with _naming(file):
        given = read_label_file(file)
        if given.ids is None or scores.ids is None:
            labels = _in_order(given, scores)
        else:
            labels = _joined(given, given.ids, scores, scores.ids)
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
    label, and a row whose id is empty has none. Both sides must have ids.

    Args:
        path: The file, as for :func:`read_labels`.
        scores: The rows to choose from.

    Raises:
        FileError: If the file cannot be read, ids are lacking, or no row has a label in it.
    """
    file = find(path)
    with _naming(file):
        given = read_label_file(file)
        if given.ids is None or scores.ids is None:
            whose = "the labels" if given.ids is None else "the scores"
            raise InputError(
                f"rows that have a label can be told by ids only, and {whose} have none. "
                "Add ids, or give a label for every row."
            )
        found = _by_id(given, given.ids, scores)
        kept = np.flatnonzero([name in found for name in scores.ids.tolist()])
        if not len(kept):
            example = next(filter(None, scores.ids.tolist()), None)
            such = "all empty" if example is None else f"such as {example!r}"
            raise InputError(
                f"no row of the scores has a label in it: their ids are {such}. "
                "Check that both files speak of the same samples."
            )
        ids = scores.ids[kept]
        return replace(
            scores,
            values=scores.values[kept],
            labels=np.array([found[name] for name in ids.tolist()], dtype=np.intp),
            features=None if scores.features is None else scores.features[kept],
            ids=ids,
            rows=kept if scores.rows is None else scores.rows[kept],
        )


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except InputError as error:
        raise FileError(f"{file}: {error}") from error


def _in_order(given: LabelFile, scores: Scores) -> Labels:
    if given.complete() is None:
        raise InputError(NO_LABELS)
    labels, _ = indices_of(given, scores)
    return check_labels(labels, n=scores.n, k=scores.k)


def _joined(
    given: LabelFile, ids: NDArray[np.str_], scores: Scores, wanted: NDArray[np.str_]
) -> Labels:
    _, rows = given.labelled()
    _refuse_nameless(wanted, np.arange(scores.n), scores.source or "the scores")
    _refuse_nameless(ids, rows, "this file")
    found = _by_id(given, ids, scores)
    lacking = [name for name in wanted.tolist() if name not in found]
    if lacking:
        raise InputError(
            f"{len(lacking)} of {len(wanted)} rows have no label here, the first {lacking[0]!r}. "
            "Add them, or judge only the rows that have one "
            "(evaluate --labelled-only, read_labelled in Python)."
        )
    return np.array([found[name] for name in wanted.tolist()], dtype=np.intp)


def _refuse_nameless(ids: NDArray[np.str_], rows: NDArray[np.intp], whose: str) -> None:
    nameless = rows[ids[rows] == ""]
    if len(nameless):
        raise InputError(
            "ids must not be empty where labels are joined by them; that of row "
            f"{nameless[0]} of {whose} is (the first row is 0). Fill it in, leave the ids out of "
            "both files to join by order, or judge only the rows that have an id and a label "
            "(evaluate --labelled-only, read_labelled in Python)."
        )


def _by_id(given: LabelFile, ids: NDArray[np.str_], scores: Scores) -> dict[str, int]:
    """The label of every id that has one."""
    labels, rows = indices_of(given, scores)
    names = ids[rows]
    named = names != ""
    found = dict(zip(names[named].tolist(), labels[named].tolist(), strict=True))
    if len(found) < np.count_nonzero(named):
        raise InputError("ids must differ from one another where labels are joined by them.")
    return found
