"""The slope of a smoothed cumulative curve (Gupta et al. 2021)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

Array = NDArray[np.float64]


def smoothed_means(weight: Array, sums: Array, n_knots: int) -> Array:
    """Smoothed ``sums / weight`` of groups in order, by a spline through their running sums.

    With ``t_j`` the weight and ``D_j`` the sum of the first ``j`` groups, ``d`` is the natural
    cubic spline with equally spaced knots on [0, 1] and ``d(0) = 0`` that is nearest to the
    points ``(t_j, D_j)`` in weighted least squares; the result is
    ``(d(t_j) - d(t_{j-1})) / (t_j - t_{j-1})``, the mean of ``d'`` over the group. That depends
    on ``d`` at the points only, so it is unique even if the points leave ``d`` open elsewhere.

    Args:
        weight: ``(g,)``, positive, together one.
        sums: ``(g,)``.
        n_knots: Knots, two at the least; one more than there are groups is the most that is used.
    """
    m = min(n_knots, len(weight) + 1)
    # Column i is the natural spline that is one at knot i and zero at the others.
    unit = CubicSpline(np.linspace(0.0, 1.0, m), np.eye(m), bc_type="natural")
    basis = unit(np.cumsum(weight))[:, 1:]
    root = np.sqrt(weight)
    at_knots = np.linalg.lstsq(basis * root[:, None], np.cumsum(sums) * root, rcond=None)[0]
    return np.diff(basis @ at_knots, prepend=0.0) / weight
