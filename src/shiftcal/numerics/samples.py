"""Statistics of samples: intervals of means and fractions, distances, densities, thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.types import Floats

# --------------------------------------------------------------------------------------
# The mean of a few repetitions, and how far the mean of many may be from it.
# --------------------------------------------------------------------------------------


class MeanInterval(NamedTuple):
    """A mean and the ends of an interval around it.

    Attributes:
        mean: Of the values.
        low: Lower end; None if one value says nothing of the spread.
        high: Upper end, None where ``low`` is.
    """

    mean: float
    low: float | None
    high: float | None


def mean_interval(values: Iterable[float], *, level: float = 0.95) -> MeanInterval:
    """Student's interval for the mean of independent repetitions.

    ``mean ± t s / sqrt(n)`` with s the standard deviation (n - 1 below) and t the quantile
    ``(1 + level) / 2`` of Student's distribution of n - 1 degrees of freedom. It holds the true
    mean with probability ``level`` if the repetitions are independent and near normal; splits
    that share images are not quite independent, and for them it is somewhat narrow.
    The order of the values does not matter to the last bit.

    Args:
        values: ``(n,)`` finite, at least one.
        level: Between 0 and 1.
    """
    numbers = [float(value) for value in values]
    n = len(numbers)
    # Equal numbers have a mean that rounding may move off all of them.
    mean = min(max(math.fsum(numbers) / n, min(numbers)), max(numbers))
    if n == 1:
        return MeanInterval(mean, None, None)
    from scipy.special import stdtrit

    variance = math.fsum((number - mean) ** 2 for number in numbers) / (n - 1)
    half = float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(variance / n)
    return MeanInterval(mean, mean - half, mean + half)


# --------------------------------------------------------------------------------------
# Distances between two samples of confidence, each sorted in rising order.
# --------------------------------------------------------------------------------------

Sample = NDArray[np.float64]


def ks_distance(a: Sample, b: Sample) -> float:
    """``max |F_a - F_b|`` of the two empirical distribution functions, in [0, 1]."""
    points = np.concatenate([a, b])
    below_a = np.searchsorted(a, points, side="right") / len(a)
    below_b = np.searchsorted(b, points, side="right") / len(b)
    return float(np.abs(below_a - below_b).max())


def wasserstein_distance(a: Sample, b: Sample) -> float:
    """``∫ |F_a(t) - F_b(t)| dt``; never less than the distance of the means."""
    points = np.sort(np.concatenate([a, b]), kind="stable")
    below_a = np.searchsorted(a, points[:-1], side="right") / len(a)
    below_b = np.searchsorted(b, points[:-1], side="right") / len(b)
    return float(np.sum(np.abs(below_a - below_b) * np.diff(points)))


# --------------------------------------------------------------------------------------
# Kernel densities of confidences, folded back at the ends of their range.
# --------------------------------------------------------------------------------------

# Where the stretched axis ends: p_max = 1 - 10**-6.
DIGITS = 6.0
# The nearest to 1 that a p_max below it can be.
_LEAST_REST = 2.0**-53
_BLOCK = 4096


def stretch(p_max: Floats) -> Floats:
    """``-log10(1 - p)``: 0.9 is 1, 0.99 is 2, 0.999 is 3; 1 itself is about 16."""
    return -np.log10(np.maximum(1 - np.asarray(p_max, np.float64), _LEAST_REST))


def scott_width(values: Floats, *, least: float) -> float:
    """Scott's bandwidth, ``std * n**(-1/5)``, but at least ``least``; that of a single value."""
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return max(spread * values.size ** (-1 / 5), least)


def folded_density(
    values: Floats,
    points: Floats,
    *,
    width: float,
    low: float,
    high: float | None = None,
    counts: NDArray[np.int64] | None = None,
) -> Floats:
    """Sum of Gaussian kernels, of mass one; what they put outside the ends is folded back once.

    Next to nothing is lost as long as the kernels are a quarter of the range wide or less.

    Args:
        values: ``(n,)`` within the ends.
        points: ``(m,)`` where the density is wanted.
        width: Standard deviation of the kernels.
        low: Lower end.
        high: Upper end; ``None`` if there is none.
        counts: ``(n,)`` how often each value is there; once by default.

    Returns:
        ``(m,)`` densities.
    """
    total = np.zeros(points.size)
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        mirrors = (block, 2 * low - block) + (() if high is None else (2 * high - block,))
        for mirrored in mirrors:
            kernels = np.exp(-0.5 * ((points[:, None] - mirrored) / width) ** 2)
            times = None if counts is None else counts[start : start + _BLOCK]
            total += kernels.sum(axis=1) if times is None else kernels @ times
    n = values.size if counts is None else int(counts.sum())
    return total / (n * width * math.sqrt(2 * math.pi))


def gathered(values: Floats, *, cells: int) -> tuple[Floats, NDArray[np.int64]]:
    """Means of values that are near one another, and how many they are, so that millions are few.

    Args:
        values: ``(n,)``.
        cells: Into how many parts their range is cut.
    """
    low, high = float(values.min()), float(values.max())
    if values.size <= cells or low == high:
        return np.unique(values, return_counts=True)
    place = ((values - low) * (cells / (high - low))).astype(np.intp).clip(max=cells - 1)
    counts = np.bincount(place, minlength=cells)
    sums = np.bincount(place, weights=values, minlength=cells)
    held = counts > 0
    return sums[held] / counts[held], counts[held]


# --------------------------------------------------------------------------------------
# A threshold on a score below which as many rows lie as are wrong (Garg et al. 2022).
# --------------------------------------------------------------------------------------


def atc_threshold(scores: NDArray[np.float64], n_wrong: int) -> float:
    """The score with ``n_wrong`` rows strictly below it; fewer where scores tie there.

    The share of these scores at or above it is then the accuracy of these rows, exactly if no two
    scores are equal. With none wrong it is ``-inf``, with all wrong ``inf``.

    Args:
        scores: ``(n,)``, larger where a row is more likely right.
        n_wrong: Rows predicted wrongly, ``0 <= n_wrong <= n``.
    """
    if n_wrong == 0:
        return -np.inf
    if n_wrong == len(scores):
        return np.inf
    return float(np.partition(scores, n_wrong)[n_wrong])


def share_at_or_above(scores: NDArray[np.float64], threshold: float) -> float:
    """Share of ``(n,)`` scores that are no smaller than a threshold."""
    return float(np.count_nonzero(scores >= threshold)) / len(scores)


# --------------------------------------------------------------------------------------
# How far the share of rows that are right may be from the probability of being right.
# --------------------------------------------------------------------------------------


def exact_intervals(
    hits: NDArray[Any], n: NDArray[Any], *, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both ends of Clopper and Pearson's intervals of ``hits / n``.

    They hold the probability at least as often as ``level`` says, for every n. Rows that differ in
    their probabilities vary less than rows that do not, so that it is kept for their mean too.

    Args:
        hits: ``(m,)``, from 0 to n. Need not be whole: rows of equal confidence are shared among
            bins.
        n: ``(m,)`` rows, more than 0.
        level: Strictly between 0 and 1.
    """
    from scipy.special import betaincinv

    total = np.asarray(n, np.float64)
    k = np.clip(np.asarray(hits, np.float64), 0.0, total)
    tail = (1 - level) / 2
    # The quantiles at the ends of their range are written out: a beta of shape 0 has none.
    low = np.where(k > 0, betaincinv(np.maximum(k, 1e-12), total - k + 1, tail), 0.0)
    high = np.where(k < total, betaincinv(k + 1, np.maximum(total - k, 1e-12), 1 - tail), 1.0)
    return np.minimum(low, k / total), np.maximum(high, k / total)
