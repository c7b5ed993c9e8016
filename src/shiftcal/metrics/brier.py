"""Brier score over all classes."""

from __future__ import annotations

from shiftcal.metrics.base import Facts, check_full, metric
from shiftcal.numerics.losses import square_losses


@metric(Facts(reads="full", upper=2.0, rows=square_losses))
def brier(probs: object, labels: object) -> float:
    """Brier score: the mean of ``sum_k (p_k - [y = k])^2``, from 0 to 2.

    The sum runs over all classes (Brier, 1950); with two classes it is twice the binary score.

    Args:
        probs: ``(n, k)`` probabilities.
        labels: ``(n,)`` class indices.
    """
    return float(square_losses(*check_full(probs, labels)).mean())
