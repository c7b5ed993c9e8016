"""Class-wise expected calibration error."""

from __future__ import annotations

import numpy as np

from shiftcal.metrics._bins import Binning, bins
from shiftcal.metrics.base import Facts, check_full, metric
from shiftcal.numerics.binning.errors import expected_error


@metric(Facts(reads="full", calibration=True))
def classwise_ece(
    probs: object, labels: object, *, n_bins: int = 15, binning: Binning = "size"
) -> float:
    """Class-wise expected calibration error: ECE of each class's column, averaged over classes.

    ``1/k sum_j ECE(probs[:, j], labels == j)``: every column is judged as a forecast of its own
    class, whether or not that class was predicted. Most columns are near zero most of the time,
    so it is much smaller than the top-1 error when there are many classes.

    Args:
        probs: ``(n, k)`` probabilities.
        labels: ``(n,)`` class indices. Classes that never occur count like the others.
        n_bins: Number of bins a class.
        binning: ``"size"`` or ``"width"``, as in :func:`shiftcal.metrics.ece`.
    """
    p, y = check_full(probs, labels)
    columns = np.ascontiguousarray(p.T)
    return float(
        np.mean([expected_error(bins(c, y == j, n_bins, binning)) for j, c in enumerate(columns)])
    )
