"""Coordinates in which the likelihood of ``softmax(W x + b)`` is about equally curved all round.

Logits of a network are strongly correlated; in its own coordinates the problem takes a
quasi-Newton method ten times the steps, or never ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Coordinates:
    """A linear change of variables for the ``(k, d)`` rows of ``[W b]``.

    What all rows have in common cancels in softmax and is curved by the penalty alone, so it is
    scaled by the penalty; the rest is whitened.

    Attributes:
        root: ``(d, d)`` lower Cholesky factor of the curvature of a row.
        common: ``(d,)`` square root of the curvature of what the rows have in common.
    """

    root: Array
    common: Array

    def enter(self, parameters: Array) -> Array:
        """``[W b]`` in these coordinates."""
        mean = parameters.mean(axis=0)
        return (parameters - mean) @ self.root + mean * self.common

    def leave(self, point: Array) -> Array:
        """``[W b]`` of a point in these coordinates."""
        mean = point.mean(axis=0)
        apart = solve_triangular(self.root, (point - mean).T, lower=True, trans="T").T
        return apart + mean / self.common

    def slopes(self, slopes: Array) -> Array:
        """Derivatives by these coordinates from derivatives by ``[W b]``."""
        mean = slopes.mean(axis=0)
        apart = solve_triangular(self.root, (slopes - mean).T, lower=True).T
        return apart + mean / self.common


def coordinates_for(
    features: Array, shares: Array, *, curvature: float, penalties: Array
) -> Coordinates:
    """Coordinates for a full matrix on these features.

    Args:
        features: ``(n, k)``.
        shares: ``(n,)`` weights that sum to one.
        curvature: Mean of ``p (1 - p)`` over rows and classes.
        penalties: ``(k + 1,)`` mean penalty of a column of ``[W b]``.
    """
    k = features.shape[1]
    moments = np.empty((k + 1, k + 1))
    weighted = features * shares[:, None]
    moments[:k, :k] = weighted.T @ features
    moments[k, :k] = moments[:k, k] = weighted.sum(axis=0)
    moments[k, k] = 1.0
    moments *= curvature
    # Without any penalty the matrix may be singular; this much of it is rounding anyway.
    least = 1e-10 * moments.trace() / (k + 1)
    own = np.maximum(2 * penalties, least)
    return Coordinates(np.linalg.cholesky(moments + np.diag(own)), np.sqrt(own))
