"""Samples put into bins by confidence: the sums every binned calibration error is made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Confidence, Correct
from shiftcal.numerics.binning.passes import Apart, Sums, sums_by_rank, sums_by_width

# Below this many samples sorting takes a millisecond or two; importing numba takes half a second.
_SMALL = 1 << 15
# With more bins than this the compiled passes save nothing over sorting.
_MANY_BINS = 256


class BinSums(NamedTuple):
    """What is known of each of ``m`` bins, from the least confident to the most.

    Attributes:
        counts: ``(m,)`` number of samples.
        confidence: ``(m,)`` sum of their confidence.
        correct: ``(m,)`` sum of their correctness. Not always whole: where samples of equal
            confidence fall into two bins, each takes its share of the group's mean.
        lower: ``(m,)`` lower edge.
        upper: ``(m,)`` upper edge.
    """

    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    correct: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def equal_size_bins(confidence: Confidence, correct: Correct, n_bins: int) -> BinSums:
    """Bins of equally many samples, as ``np.array_split`` cuts the sorted confidences.

    Sizes differ by at most one, every sample is in one bin, and there are no more bins than
    samples. The order of the rows never matters, to the last bit: inside a group of equal
    confidence the correctness of each is the group's mean. Edges are the least and the greatest
    confidence in the bin.

    Args:
        confidence: ``(n,)``.
        correct: ``(n,)``.
        n_bins: How many bins are wanted.
    """
    n, m = len(confidence), min(n_bins, len(confidence))
    counts = np.full(m, n // m, dtype=np.int64)
    counts[: n % m] += 1
    if _is_small(n, m):
        sums = Sums(counts, np.zeros(m), np.zeros(m))
        apart = Apart(_sorted_keys(confidence, correct), np.arange(n))
    else:
        sums, apart = sums_by_rank(confidence, correct, counts.cumsum())
    return _cut(counts, sums, apart)


def equal_width_bins(confidence: Confidence, correct: Correct, n_bins: int) -> BinSums:
    """Bins ``(i / m, (i + 1) / m]`` of equal width on [0, 1]; the first holds 0 too.

    The order of the rows never matters, to the last bit.

    Args:
        confidence: ``(n,)``.
        correct: ``(n,)``.
        n_bins: How many bins there are; some may be empty.
    """
    edges = np.linspace(0, 1, n_bins + 1)
    if not _is_small(len(confidence), n_bins):
        return BinSums(*sums_by_width(confidence, correct, n_bins), edges[:-1], edges[1:])
    keys = _sorted_keys(confidence, correct)
    c = _confidence(keys)
    bin_of = np.maximum(np.searchsorted(edges, c, side="left") - 1, 0)
    return BinSums(
        np.bincount(bin_of, minlength=n_bins).astype(np.int64, copy=False),
        np.bincount(bin_of, weights=c, minlength=n_bins).astype(np.float64, copy=False),
        np.bincount(bin_of, weights=keys & 1, minlength=n_bins).astype(np.float64, copy=False),
        edges[:-1],
        edges[1:],
    )


def _is_small(n: int, n_bins: int) -> bool:
    return n < _SMALL or n_bins > _MANY_BINS


def _sorted_keys(confidence: Confidence, correct: Correct) -> NDArray[np.int64]:
    # The bits of non-negative numbers are in the numbers' order; adding 0 makes -0 such a one.
    bits = (confidence.astype(np.float64) + 0.0).view(np.int64)
    return np.sort((bits << 1) | correct)


def _confidence(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    return (keys >> 1).view(np.float64)


def _cut(counts: NDArray[np.int64], sums: Sums, apart: Apart) -> BinSums:
    """Add the samples that were kept apart to the bins of these sizes."""
    ends = counts.cumsum()
    last = np.searchsorted(apart.ranks, ends)
    first = np.searchsorted(apart.ranks, ends - counts)
    c = _confidence(apart.keys)
    kept = np.array([c[i:j].sum() for i, j in zip(first, last, strict=True)])
    correct = np.diff(_correct_before(apart.keys, np.concatenate([first[:1], last])))
    return BinSums(counts, sums.confidence + kept, sums.correct + correct, c[first], c[last - 1])


def _correct_before(keys: NDArray[np.int64], positions: NDArray[np.intp]) -> NDArray[np.float64]:
    """The correct ones before each position; inside a group of equals, its mean for each."""
    total = np.concatenate([[0], np.cumsum(keys & 1)])
    value = keys[np.minimum(positions, len(keys) - 1)] >> 1
    start = np.searchsorted(keys, value << 1, side="left")
    stop = np.searchsorted(keys, (value << 1) | 1, side="right")
    share = (positions - start) / (stop - start)
    return total[start] + share * (total[stop] - total[start])
