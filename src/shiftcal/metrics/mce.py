"""Maximum calibration error of the predicted class."""

from __future__ import annotations

from shiftcal.metrics._bins import Binning, bins
from shiftcal.metrics.base import Facts, check_top1, metric
from shiftcal.numerics.binning.errors import largest_error


@metric(Facts(reads="top1", calibration=True))
def mce(
    confidence: object, correct: object, *, n_bins: int = 15, binning: Binning = "size"
) -> float:
    """Maximum calibration error: the largest gap between confidence and accuracy of any bin.

    ``MCE = max_b |accuracy of bin b - mean confidence of bin b|`` over bins that hold a row. With
    ``binning="width"`` a bin may hold very few rows and decide alone; bins of equal size do not.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
        n_bins: Number of bins.
        binning: ``"size"`` or ``"width"``, as in :func:`shiftcal.metrics.ece`.
    """
    c, r = check_top1(confidence, correct)
    return largest_error(bins(c, r, n_bins, binning))
