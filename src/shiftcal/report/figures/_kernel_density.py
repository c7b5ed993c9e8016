"""The density of p_max, on the plain axis or on one that is stretched towards 1."""

from __future__ import annotations

import numpy as np

from shiftcal._checks import check_confidence
from shiftcal._types import Confidence, Floats
from shiftcal.numerics.kernel_density import DIGITS, folded_density, scott_width, stretch
from shiftcal.report.figures._record import within_one

_LEAST_BANDWIDTH, _LEAST_STRETCHED = 0.005, 0.05


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
    if not stretched:
        width = scott_width(values, least=_LEAST_BANDWIDTH)
        return folded_density(values, points, width=width, low=0.0, high=1.0)
    digits = stretch(values)
    width = scott_width(digits, least=2 * _LEAST_STRETCHED) / 2
    return folded_density(digits, stretch(points), width=width, low=0.0)
