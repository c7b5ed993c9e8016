"""Expected calibration error of the predicted class."""

from __future__ import annotations

from shiftcal.metrics._bins import Binning, bins
from shiftcal.metrics.base import Facts, check_top1, metric
from shiftcal.numerics.binning.errors import expected_error


@metric(Facts(reads="top1", calibration=True))
def ece(
    confidence: object, correct: object, *, n_bins: int = 15, binning: Binning = "size"
) -> float:
    """Expected calibration error: how far confidence and accuracy differ, on average over bins.

    ``ECE = sum_b n_b/n |accuracy of bin b - mean confidence of bin b|``, with the bins formed on
    the confidence that is judged. On a finite sample it is too high: a perfectly calibrated
    predictor gets about ``0.8 mean(sqrt(c (1 - c))) sqrt(n_bins / n)``, 0.011 for 5,000 rows of
    mean confidence 0.91. :func:`shiftcal.metrics.bootstrap` gives an interval that allows for it.
    With ``n_bins=1`` it is ``|mean confidence - accuracy|``.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
        n_bins: Number of bins; with fewer rows than that, one bin a row.
        binning: ``"size"``: bins of equally many rows (sizes differ by one at the most); rows of
            equal confidence share their correctness evenly, so the order of rows never matters.
            ``"width"``: bins ``(i/m, (i+1)/m]`` of equal width, the first holding 0 as well.

    Example:
        >>> round(ece([0.6, 0.7, 0.8, 0.9], [True, False, True, True], n_bins=2), 4)
        0.15
    """
    c, r = check_top1(confidence, correct)
    return expected_error(bins(c, r, n_bins, binning))
