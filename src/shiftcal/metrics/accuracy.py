"""Accuracy."""

from __future__ import annotations

from shiftcal.metrics.base import Facts, check_full, metric
from shiftcal.numerics.losses import hits


@metric(Facts(reads="full", better="higher", rows=hits))
def accuracy(probs: object, labels: object) -> float:
    """Accuracy: the fraction of rows whose largest probability is that of the true class.

    Of several equal largest ones the first is the prediction, as in ``argmax``.

    Args:
        probs: ``(n, k)`` probabilities.
        labels: ``(n,)`` class indices.
    """
    return float(hits(*check_full(probs, labels)).mean())
