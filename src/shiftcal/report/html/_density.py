"""Densities of p_max from counts, so that a million rows cost as much as a thousand."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# Where the stretched axis ends: p_max = 1 - 10**-5. What is nearer to 1 is counted there.
DIGITS = 5.0
# Cells that rows are counted in, several to the narrowest kernel.
_CELLS = 1000
# The narrowest kernel and the widest, which is folded back whole, as shares of the axis.
_LEAST_WIDTH, _MOST_WIDTH = 0.008, 0.2


def stretch(p_max: NDArray[np.float64]) -> NDArray[np.float64]:
    """``-log10(1 - p)`` up to the end of the axis: 0.9 is 1, 0.99 is 2, 0.999 is 3."""
    return -np.log10(np.maximum(1 - p_max, 10.0**-DIGITS))


def density(
    p_max: NDArray[np.float64], grid: NDArray[np.float64], *, stretched: bool = False
) -> NDArray[np.float64]:
    """Kernel density of values in [0, 1], with no mass lost at the ends.

    Gaussian kernels of Scott's bandwidth, ``std * n**(-1/5)``, but from 0.008 to 0.2 of the axis,
    on the middles of a thousand cells; what a kernel puts beyond an end is folded back.
    Stretched, it is the density of :func:`stretch` of the values, per unit of that scale.

    Args:
        p_max: ``(n,)``.
        grid: ``(m,)`` values of p_max where the density is wanted.
        stretched: On which axis.
    """
    end = DIGITS if stretched else 1.0
    values, points = (stretch(p_max), stretch(grid)) if stretched else (p_max, grid)
    counts, edges = np.histogram(values, bins=_CELLS, range=(0.0, end))
    held = np.flatnonzero(counts)
    middles, weights = (edges[held] + edges[held + 1]) / 2, counts[held] / len(values)
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    width = spread * len(values) ** (-1 / 5)
    width = min(max(width, _LEAST_WIDTH * end), _MOST_WIDTH * end)
    total = np.zeros(len(points))
    for mirrored in (middles, -middles, 2 * end - middles):
        total += np.exp(-0.5 * ((points[:, None] - mirrored) / width) ** 2) @ weights
    return total / (width * math.sqrt(2 * math.pi))
