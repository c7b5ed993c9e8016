"""Rows gathered into groups of equal (or nearly equal) confidence, in order of confidence.

A group is all a rank-based metric may know of its rows: rows of equal confidence have no order
among themselves, so whatever is cut inside a group is cut as if its rows were spread evenly. That
makes every such metric independent of the order in which rows come, and lets a table of cells
stand for the rows it counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Confidence, Correct


@dataclass(frozen=True)
class Groups:
    """Sums over groups of rows, ascending in confidence; no group is empty.

    Attributes:
        count: Rows in each group.
        confidence: Sum of their confidences.
        correct: Number of them that are correct.
    """

    count: NDArray[np.int64]
    confidence: NDArray[np.float64]
    correct: NDArray[np.float64]

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.count.sum())


def tie_groups(confidence: Confidence, correct: Correct) -> Groups:
    """The groups of exactly equal confidence."""
    c, r = _sorted(confidence, correct)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(c)) + 1])
    count = np.diff(starts, append=len(c))
    return Groups(
        count=count,
        confidence=c[starts].astype(np.float64) * count,
        correct=np.add.reduceat(r, starts, dtype=np.int64).astype(np.float64),
    )


def equal_size_cuts(n: int, n_bins: int) -> NDArray[np.int64]:
    """Ranks ``0 = a_0 < a_1 < ... = n`` between bins whose sizes differ by one at the most.

    The first ``n mod n_bins`` bins have the extra row. With fewer rows than bins, every row is a
    bin of its own.
    """
    m = min(n, n_bins)
    size, extra = divmod(n, m)
    i = np.arange(m + 1)
    return i * size + np.minimum(i, extra)


def sums_between(
    count: NDArray[Any], sums: NDArray[Any], cuts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sums over the rows between neighbouring ranks, a group that is cut being spread evenly.

    Args:
        count: ``(g,)`` rows in each group, none zero.
        sums: ``(g,)`` what is summed, per group.
        cuts: ``(m + 1,)`` ranks from 0 to the number of rows.
    """
    ranks = np.concatenate([[0], np.cumsum(count)])
    running = np.concatenate([[0], np.cumsum(sums)])
    return np.diff(np.interp(cuts, ranks, running))


def largest_residual(groups: Groups) -> float:
    """``max_k |sum_{i <= k} (c_i - r_i)| / n`` over the ends of the groups."""
    path = np.cumsum(groups.confidence - groups.correct)
    return float(np.abs(path).max()) / groups.n


def _sorted(confidence: Confidence, correct: Correct) -> tuple[Confidence, NDArray[np.uint8]]:
    # One key carries both: the bits of a non-negative float sort like the float, and a confidence
    # leaves the two topmost ones free. Sorting keys is several times faster than argsort.
    bits: Any = np.uint32 if confidence.dtype == np.float32 else np.uint64
    key: Any = (confidence + confidence.dtype.type(0)).view(bits)  # + 0 makes -0.0 into 0.0
    key <<= bits(1)
    key |= correct.view(np.uint8)
    key.sort()
    return (key >> bits(1)).view(confidence.dtype), (key & bits(1)).astype(np.uint8)
