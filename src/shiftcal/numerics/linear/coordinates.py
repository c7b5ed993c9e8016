"""Coordinates in which the likelihood of ``softmax(W x + b)`` is about equally curved all round.

Logits of a network are strongly correlated; in its own coordinates the problem takes a
quasi-Newton method tens of times the steps, or never ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Above this many classes one matrix serves all rows of W: one for each would fill the memory.
_MOST_MATRICES = 200
# Rows that are enough to measure the curvature.
_ENOUGH_ROWS = 20_000


@dataclass(frozen=True)
class Coordinates:
    """A linear change of variables for the ``(k, d)`` rows of ``[W b]``.

    The whole rows for a matrix, ``d = k + 1``; the diagonal and ``b`` for a vector, ``d = 2``. A
    part that all rows have in common cancels in softmax, so that only the penalty curves it, and
    it is scaled by that; the rest is whitened row by row.

    Attributes:
        inverse: ``(k, d, d)`` inverse Cholesky factors of the curvature of each row, or
            ``(1, d, d)`` that of their mean.
        common: ``(d,)`` square root of the curvature of what the rows have in common.
    """

    inverse: Array
    common: Array

    def leave(self, point: Array) -> Array:
        """The change of ``[W b]`` that a ``(k, d)`` point stands for."""
        mean = point.mean(axis=0)
        return _times(point - mean, self.inverse) + mean / self.common

    def slopes(self, slopes: Array) -> Array:
        """Derivatives by the point from derivatives by ``[W b]``."""
        apart = _times(slopes, self.inverse.transpose(0, 2, 1))
        return apart - apart.mean(axis=0) + slopes.mean(axis=0) / self.common


def coordinates_for(
    features: Array, shares: Array, probs: Array, *, weight_penalty: Array, intercept_penalty: float
) -> Coordinates:
    """Coordinates for a map on these features.

    Args:
        features: ``(n, k)``.
        shares: ``(n,)`` weights that sum to one.
        probs: ``(n, k)`` near those of the optimum.
        weight_penalty: ``(k, k)`` penalties of a matrix, or ``(k,)`` of a vector.
        intercept_penalty: That of an intercept.
    """
    n, k = features.shape
    some = slice(None, None, max(1, n // _ENOUGH_ROWS))
    # Where the model makes no mistake there is no curvature, and these would be no coordinates.
    bends = np.maximum(probs[some] * (1 - probs[some]), 1e-6)
    bends *= (shares[some] / shares[some].sum())[:, None]
    penalties = np.column_stack([2 * weight_penalty, np.full(k, 2 * intercept_penalty)])
    common = penalties.mean(axis=0)
    if weight_penalty.ndim == 1:
        curvatures = _of_pairs(features[some], bends)
        common[0] += curvatures[:, 0, 0].mean()  # a common weight does not cancel
    elif k <= _MOST_MATRICES:
        curvatures = _of_rows(features[some], bends)
    else:
        curvatures = _of_rows(features[some], bends.mean(axis=1, keepdims=True))
        penalties = common[None]
    # Without any penalty the matrices may be singular; this much of them is rounding anyway.
    least = 1e-10 * curvatures.trace(axis1=1, axis2=2).mean() / len(common)
    diagonal = np.arange(len(common))
    curvatures[:, diagonal, diagonal] += np.maximum(penalties, least)
    inverse = np.linalg.inv(np.linalg.cholesky(curvatures))
    return Coordinates(inverse, np.sqrt(np.maximum(common, least)))


def _of_rows(features: Array, bends: Array) -> Array:
    """Curvatures ``(r, k + 1, k + 1)`` by whole rows of ``[W b]``, for ``r`` columns of bends."""
    x = np.column_stack([features, np.ones(len(features))])
    return np.stack([(x * bend[:, None]).T @ x for bend in bends.T])


def _of_pairs(features: Array, bends: Array) -> Array:
    """Curvatures ``(k, 2, 2)`` by each class's own weight and intercept."""
    first = bends * features
    square, cross, one = (first * features).sum(axis=0), first.sum(axis=0), bends.sum(axis=0)
    return np.stack([np.stack([square, cross], axis=1), np.stack([cross, one], axis=1)], axis=1)


def _times(rows: Array, matrices: Array) -> Array:
    """Every row times its matrix, or all of them times the only one."""
    if len(matrices) == 1:
        return rows @ matrices[0]
    return np.matmul(rows[:, None, :], matrices)[:, 0, :]
