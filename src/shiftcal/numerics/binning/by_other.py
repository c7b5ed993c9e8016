"""Bins formed on one confidence, another confidence averaged in them."""

from __future__ import annotations

from typing import Literal

import numpy as np

from shiftcal._types import Confidence, Correct
from shiftcal.numerics.binning.bins import BinSums, equal_size_bins, equal_width_bins
from shiftcal.numerics.binning.groups import equal_size_cuts, sums_between


def binned_by(
    by: Confidence,
    confidence: Confidence,
    correct: Correct,
    *,
    n_bins: int,
    binning: Literal["size", "width"],
) -> BinSums:
    """The bins of ``by`` with the sums of ``confidence``; rows that tie in ``by`` are spread.

    Args:
        by: ``(n,)`` forms the bins and gives their edges.
        confidence: ``(n,)`` is summed.
        correct: ``(n,)``.
        n_bins: How many bins are wanted.
        binning: Of equal size or of equal width.
    """
    if binning == "width":
        bins = equal_width_bins(by, correct, n_bins)
        where = np.maximum(np.searchsorted(bins.lower, by, side="left") - 1, 0)
        sums = np.asarray(np.bincount(where, confidence, minlength=n_bins), dtype=np.float64)
        return bins._replace(confidence=sums)
    _, group = np.unique(by, return_inverse=True)
    sums = sums_between(
        np.bincount(group), np.bincount(group, confidence), equal_size_cuts(len(by), n_bins)
    )
    return equal_size_bins(by, correct, n_bins)._replace(confidence=sums)
