"""The density of p_max, on the plain axis or on one that is stretched towards 1."""

from __future__ import annotations

import math

import numpy as np

from shiftcal._checks import check_confidence
from shiftcal._types import Confidence, Floats
from shiftcal.report.figures._record import within_one

# Where the stretched axis ends: p_max = 1 - 10**-6.
DIGITS = 6.0
_LEAST_BANDWIDTH, _LEAST_STRETCHED = 0.005, 0.05
# The nearest to 1 that a p_max below it can be.
_LEAST_REST = 2.0**-53
_BLOCK = 4096


def stretch(p_max: Floats) -> Floats:
    """``-log10(1 - p)``: 0.9 is 1, 0.99 is 2, 0.999 is 3; 1 itself is about 16."""
    return -np.log10(np.maximum(1 - np.asarray(p_max, np.float64), _LEAST_REST))


def stretched_grid(points: int) -> Floats:
    """Values of p_max at equal distances on the stretched axis, from 0 to its end."""
    return 1 - 10 ** -np.linspace(0.0, DIGITS, points)


def density(p_max: Confidence, grid: Floats, *, stretched: bool = False) -> Floats:
    """Kernel density of values in [0, 1], with no mass lost at the ends.

    Gaussian kernels with Scott's bandwidth, ``std * n**(-1/5)``, but at least 0.005; what a kernel
    puts below 0 or above 1 is folded back, so that the density integrates to one over [0, 1].

    Stretched, it is the density of :func:`stretch` of the values, per unit of that scale. Kernels
    have half of Scott's bandwidth there, since values spread far to the right of a steep edge, but
    at least 0.05, and are folded back at 0. Over a grid that ends before 1 it integrates to the
    share of values that lie within it.

    Args:
        p_max: ``(n,)`` highest probabilities.
        grid: ``(m,)`` values of p_max where the density is wanted, rising, in [0, 1].
        stretched: Whether it is the density on the stretched axis.

    Returns:
        ``(m,)`` densities.
    """
    values: Floats = check_confidence(p_max, name="p_max").astype(np.float64)
    points: Floats = np.asarray(grid, np.float64)
    within_one("a density", points.ravel().tolist(), name="grid")
    share, least = 1.0, _LEAST_BANDWIDTH
    if stretched:
        values, points = stretch(values), stretch(points)
        share, least = 0.5, _LEAST_STRETCHED
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    width = max(share * spread * values.size ** (-1 / 5), least)
    total = np.zeros(points.size)
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        for mirrored in (block, -block) if stretched else (block, -block, 2 - block):
            total += np.exp(-0.5 * ((points[:, None] - mirrored) / width) ** 2).sum(axis=1)
    return total / (values.size * width * math.sqrt(2 * math.pi))
