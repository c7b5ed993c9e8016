"""Scores and labels of every set of a bank, as they were given: checked and copied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from shiftcal._checks import check_labels, check_scores, label_indices, to_array
from shiftcal._types import Labels, Logits
from shiftcal.errors import InputError

EMPTY = "a surrogate bank needs at least one set: the clean calibration set."


def logits_per_set(scores: Iterable[object], input: str) -> list[Logits]:
    """Logits of every set, copied, all with one number of classes."""
    if isinstance(scores, np.ndarray) and scores.ndim == 2:
        raise InputError(
            "scores must be a sequence of arrays, one per set; got one array of shape "
            f"{scores.shape}. For the clean set alone pass [scores]."
        )
    if isinstance(scores, (str, bytes, dict)) or not isinstance(scores, Iterable):
        raise InputError(
            f"scores must be a sequence of arrays, one per set; got {type(scores).__name__}. "
            "Files make a bank with SurrogateBank.from_files."
        )
    # A bank outlives its making: a buffer that is used again must not change it.
    logits = [np.array(check_scores(array, input=input)) for array in scores]
    if not logits:
        raise InputError(EMPTY)
    one_width(logits)
    return logits


def one_width(logits: Sequence[Logits]) -> int:
    """The number of classes that all sets have."""
    columns = sorted({z.shape[1] for z in logits})
    if len(columns) > 1:
        raise InputError(
            f"all sets of a bank must have the same number of classes; these have {columns}. "
            "They must come from one model."
        )
    return int(columns[0])


def labels_per_set(
    labels: object, shapes: list[tuple[int, ...]], classes: tuple[str, ...] | None
) -> list[Labels]:
    """Labels of every set: one array that serves all, or one for each.

    Args:
        labels: Class indices, or names if ``classes`` are given.
        shapes: Of the logits of every set.
        classes: Names of the classes in the order of the columns.
    """
    given = list(labels) if isinstance(labels, (list, tuple)) else [labels]
    if given and np.isscalar(given[0]):  # a plain list of class indices
        given = [labels]
    if len(given) == 1:
        given *= len(shapes)
    if len(given) != len(shapes):
        raise InputError(
            f"labels must be one array for all sets or one per set: {len(shapes)} sets, "
            f"{len(given)} arrays of labels."
        )
    if classes is not None:
        given = [label_indices(to_array(y, name="labels"), classes) for y in given]
    checked = [check_labels(y, n=n, k=k) for y, (n, k) in zip(given, shapes, strict=True)]
    return [np.array(y) for y in checked]
