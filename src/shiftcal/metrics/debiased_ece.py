"""Debiased calibration error of the predicted class (Kumar, Liang and Ma, 2019)."""

from __future__ import annotations

from shiftcal.metrics._bins import Binning, bins
from shiftcal.metrics.base import Facts, check_top1, metric
from shiftcal.numerics.binning.errors import debiased_error


@metric(Facts(reads="top1", calibration=True))
def debiased_ece(
    confidence: object, correct: object, *, n_bins: int = 15, binning: Binning = "size"
) -> float:
    """Root mean square calibration error with the noise of finite bins subtracted (Kumar, 2019).

    ``sqrt(max(0, sum_b n_b/n [(conf_b - acc_b)^2 - acc_b (1 - acc_b) / (n_b - 1)]))``. The second
    term is the variance of ``acc_b``, which the plug-in error counts as miscalibration; without it
    the square is unbiased for the binned predictor. It is a root mean *square* over bins, so it is
    not a corrected :func:`shiftcal.metrics.ece`: on large samples it is the larger of the two.
    Bins of fewer than two rows add nothing.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
        n_bins: Number of bins.
        binning: ``"size"`` or ``"width"``, as in :func:`shiftcal.metrics.ece`.
    """
    c, r = check_top1(confidence, correct)
    return debiased_error(bins(c, r, n_bins, binning))
