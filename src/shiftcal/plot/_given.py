"""What a plot was given, as confidences: scores, rows of a model, or confidences themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_confidence, check_labels, check_scores, label_indices, to_array
from shiftcal._types import Confidence, Correct, Labels
from shiftcal.errors import InputError
from shiftcal.metrics.base import check_top1
from shiftcal.numerics.softmax import p_max
from shiftcal.scores import Scores

# Of a confidence in float32 below 1/K, which a highest probability cannot be.
_BELOW = 1e-6


def given_top1(values: object, truth: object, *, input: str) -> tuple[Confidence, Correct]:
    """Confidence and correctness ``(n,)`` each, from what can be told of them.

    Args:
        values: Confidences ``(n,)``; logits or probabilities ``(n, k)``; or :class:`Scores`.
        truth: Beside confidences whether each was right; beside rows the labels. Scores have their
            own labels if it is ``None``.
        input: What rows are.

    Raises:
        InputError: If they cannot be used.
    """
    if isinstance(values, Scores):
        logits = values.logits()
        return p_max(logits), logits.argmax(axis=1) == _labels_of(values, truth)
    if truth is None:
        raise InputError(
            f"confidence must come with correct, whether each prediction was right; got "
            f"{type(values).__name__} alone. Only labelled Scores and a BinTable bring it along."
        )
    if columns(values) is None:
        return check_top1(values, truth)
    logits = check_scores(values, input=input)
    n, k = logits.shape
    return p_max(logits), logits.argmax(axis=1) == check_labels(truth, n=n, k=k)


def given_confidence(
    values: object, *, input: str, name: str, n_classes: int | None
) -> NDArray[np.float64]:
    """Confidences ``(n,)``.

    Args:
        values: Confidences ``(n,)``; logits or probabilities ``(n, k)``; or :class:`Scores`.
        input: What rows are.
        name: What they are called in messages.
        n_classes: Number of classes they must have; ``None`` if it is not known.

    Raises:
        InputError: If they cannot be used, are of another number of classes, or a confidence is
            less than one in ``n_classes``.
    """
    k = columns(values)
    if k is not None and n_classes is not None and k != n_classes:
        raise InputError(
            f"{name} must be of the {n_classes} classes that the others are of; it has {k}. "
            "All must come from one model."
        )
    if isinstance(values, Scores):
        return p_max(values.logits())
    if k is not None:
        return p_max(check_scores(values, input=input))
    confidence = check_confidence(values, name=name).astype(np.float64)
    least = float(confidence.min())
    if n_classes is not None and least < 1 / n_classes - _BELOW:
        raise InputError(
            f"{name} must be at least 1/{n_classes}, as the highest of {n_classes} probabilities "
            f"is; the least is {least:.4g}. Pass the highest probability of every row."
        )
    return confidence


def columns(values: object) -> int | None:
    """The number of classes, of scores and of rows; ``None`` of confidences."""
    if isinstance(values, Scores):
        return values.k
    shape = to_array(values, name="confidence").shape
    return int(shape[1]) if len(shape) == 2 and shape[1] > 1 else None


def _labels_of(scores: Scores, truth: object) -> Labels:
    if truth is None:
        if scores.labels is None:
            raise InputError(
                "scores must have labels, or come with them; these have none. Accuracy cannot be "
                "drawn of unlabelled data: see plot.confidence_density."
            )
        return scores.labels
    given: Any = to_array(truth, name="labels")
    if scores.classes is not None:
        given = label_indices(given, scores.classes)
    return check_labels(given, n=scores.n, k=scores.k)
