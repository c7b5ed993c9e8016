"""Kolmogorov-Smirnov calibration error of the predicted class (Gupta et al., 2021)."""

from __future__ import annotations

from shiftcal.metrics.base import Facts, check_top1, metric
from shiftcal.numerics.binning.groups import largest_residual, tie_groups


@metric(Facts(reads="top1", calibration=True))
def ks_error(confidence: object, correct: object) -> float:
    """Kolmogorov-Smirnov calibration error: the largest gap of two cumulative sums.

    ``max_k |sum_{i <= k} (c_i - r_i)| / n`` with the rows in order of confidence (Gupta et al.,
    2021). It has no bins. Rows of equal confidence are taken together, so their order never
    matters. It is never below ``|mean confidence - accuracy|``.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
    """
    return largest_residual(tie_groups(*check_top1(confidence, correct)))
