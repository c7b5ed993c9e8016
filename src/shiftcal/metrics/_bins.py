"""The one place where ``n_bins`` and ``binning`` are read and rows become bins."""

from __future__ import annotations

from typing import Literal

from shiftcal._checks import check_choice, check_count
from shiftcal._types import Confidence, Correct
from shiftcal.numerics.binning.bins import BinSums, equal_size_bins, equal_width_bins

Binning = Literal["size", "width"]
MOST_BINS = 1_000_000


def check_bins(n_bins: object, binning: object) -> tuple[int, Binning]:
    """The two options of every binned metric, checked."""
    m = check_count(n_bins, name="n_bins", most=MOST_BINS)
    return m, check_choice(binning, ("size", "width"), name="binning")


def bins(confidence: Confidence, correct: Correct, n_bins: object, binning: object) -> BinSums:
    """The sums over bins of checked arrays."""
    m, kind = check_bins(n_bins, binning)
    form = equal_size_bins if kind == "size" else equal_width_bins
    return form(confidence, correct, m)
