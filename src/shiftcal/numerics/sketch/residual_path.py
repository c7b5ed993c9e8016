"""Equal-size ECE as the length of a path, and how far a table of cells can be off.

Let ``P(a) = sum_{i <= a} (c_i - r_i)`` over rows in order of confidence. A bin between ranks ``a``
and ``b`` has residual ``P(b) - P(a)``, so ``n ECE = sum |P(a_j) - P(a_(j-1))|``: the up-and-down
length of the path through the cuts. A table knows ``P`` exactly at the ends of cells and between
bounds inside them. The least and greatest length of a path within those bounds therefore enclose
the exact ECE, whatever the rows inside the cells were.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftcal.numerics.binning.groups import equal_size_cuts
from shiftcal.numerics.sketch.cell_sums import CONFIDENCE_UNIT, CellSums


def ece_range(cells: CellSums, n_bins: int) -> tuple[float, float]:
    """Least and greatest equal-size ECE any rows with this table can have."""
    n = int(cells.count[0].sum())
    low, high = path_range(cells, equal_size_cuts(n, n_bins))
    return least_length(low, high) / n, greatest_length(low, high) / n


def path_range(
    cells: CellSums, cuts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds on ``P`` at the ranks ``cuts``."""
    held = cells.count[0] > 0
    count = cells.count[0, held]
    confidence = cells.confidence[0, held] * CONFIDENCE_UNIT
    correct = cells.correct[0, held]
    ends = np.cumsum(count)
    before = np.concatenate([[0.0], np.cumsum(confidence - correct)])
    at = np.minimum(np.searchsorted(ends, cuts, side="left"), len(ends) - 1)
    m, size = cuts - (ends - count)[at], count[at]  # rows of the cut cell that lie below
    least, most = cells.least[0, held][at], cells.most[0, held][at]
    mean = confidence[at] / size

    # Of the m lowest of a cell, the mean confidence is not above the cell's mean; the number
    # correct is what the others leave, or all there are.
    least_confidence = np.maximum(m * least, confidence[at] - (size - m) * most)
    least_correct = np.maximum(0, m - (size - correct[at]))
    most_correct = np.minimum(m, correct[at])
    one_value = least == most  # rows of equal confidence are spread evenly by definition
    even = m * correct[at] / size
    slack = ends[at] * CONFIDENCE_UNIT / 2
    low = np.where(one_value, m * mean - even, least_confidence - most_correct)
    high = np.where(one_value, m * mean - even, m * mean - least_correct)
    return before[at] + low - slack, before[at] + high + slack


def least_length(low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """The shortest way through the intervals in order: stay unless forced, then go no further.

    Any other way ends no nearer to where it must go next than what it has walked more.
    """
    at, length = min(max(0.0, low[0]), high[0]), 0.0
    for a, b in zip(low[1:], high[1:], strict=True):
        to = min(max(at, a), b)
        length += abs(to - at)
        at = to
    return float(length)


def greatest_length(low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """The longest way through the intervals: length is convex, so it turns at their ends."""
    ends = np.stack([low, high])
    length = np.zeros(2)
    for j in range(1, ends.shape[1]):
        steps = np.abs(ends[:, j][:, None] - ends[:, j - 1][None, :])
        length = (steps + length[None, :]).max(axis=1)
    return float(length.max())
