"""Calibration errors as functions of the sums over bins."""

from __future__ import annotations

import numpy as np

from shiftcal.numerics.binning.bins import BinSums


def expected_error(bins: BinSums) -> float:
    """``sum_b n_b/n |conf_b - acc_b|``."""
    return float(np.abs(bins.confidence - bins.correct).sum() / bins.counts.sum())


def largest_error(bins: BinSums) -> float:
    """``max_b |conf_b - acc_b|`` over the bins that hold anything."""
    held = bins.counts > 0
    gap = np.abs(bins.confidence[held] - bins.correct[held]) / bins.counts[held]
    return float(gap.max())


def debiased_error(bins: BinSums) -> float:
    """Root of ``sum_b n_b/n [(conf_b - acc_b)^2 - acc_b (1 - acc_b) / (n_b - 1)]``, least 0.

    Bins of fewer than two rows have no variance to subtract and add nothing.
    """
    held = bins.counts > 1
    if not held.any():
        return 0.0
    count = bins.counts[held]
    accuracy = bins.correct[held] / count
    square = (bins.confidence[held] / count - accuracy) ** 2
    variance = accuracy * (1.0 - accuracy) / (count - 1)
    total = float((count * (square - variance)).sum() / bins.counts.sum())
    return float(np.sqrt(max(total, 0.0)))
