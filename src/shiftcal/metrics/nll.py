"""Negative log-likelihood."""

from __future__ import annotations

from shiftcal.metrics.base import Facts, check_full, metric
from shiftcal.numerics.losses import log_losses


@metric(Facts(reads="full", upper=float("inf"), rows=log_losses))
def nll(probs: object, labels: object) -> float:
    """Negative log-likelihood: the mean of ``-log p`` of the true class, in nats.

    A probability below 1.2e-38 (the smallest normal float32) counts as that, so that one zero does
    not make the mean infinite: no row costs more than 87.34.

    Args:
        probs: ``(n, k)`` probabilities.
        labels: ``(n,)`` class indices.
    """
    return float(log_losses(*check_full(probs, labels)).mean())
