"""Brier score of the predicted class."""

from __future__ import annotations

from shiftcal.metrics.base import Facts, check_top1, metric
from shiftcal.numerics.losses import top1_square_losses


@metric(Facts(reads="top1", rows=top1_square_losses))
def top1_brier(confidence: object, correct: object) -> float:
    """Brier score of the predicted class: the mean of ``(c - r)^2``, from 0 to 1.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
    """
    return float(top1_square_losses(*check_top1(confidence, correct)).mean())
