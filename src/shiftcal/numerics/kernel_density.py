"""Kernel densities of confidences, folded back at the ends of their range."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats

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
