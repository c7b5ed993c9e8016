"""Softmax of a linear map: the convex problem of vector, matrix and Dirichlet scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from shiftcal.numerics.jit import row_blocks
from shiftcal.numerics.softmax import softmax
from shiftcal.numerics.temperature import solve_temperature
from shiftcal.types import FitStatus, Labels, Probs, Weights

# --------------------------------------------------------------------------------------
# Coordinates in which the likelihood of ``softmax(W x + b)`` is about equally curved all round.
#
# Logits of a network are strongly correlated; in its own coordinates the problem takes a
# quasi-Newton method tens of times the steps, or never ends.
# --------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------
# Likelihood of ``softmax(W x + b)`` and its slopes; ``W`` a matrix, or a vector for a diagonal.
# --------------------------------------------------------------------------------------


class Slopes(NamedTuple):
    """Mean negative log-likelihood and its derivatives.

    Attributes:
        nll: Weighted mean over the rows.
        weight: Derivative by ``W``, of its shape.
        intercept: ``(k,)`` derivative by ``b``.
    """

    nll: float
    weight: Array
    intercept: Array


def linear_scores(features: Array, weight: Array, intercept: Array) -> Array:
    """``W x + b`` for every row, ``(n, k)``; ``w * x + b`` if the weight is a vector."""
    if weight.ndim == 1:
        return features * weight + intercept
    return features @ weight.T + intercept


def linear_softmax(features: Array, weight: Array, intercept: Array) -> Probs:
    """``softmax(W x + b)`` for every row, ``(n, k)``."""
    return softmax(linear_scores(features, weight, intercept))


def nll_slopes(
    features: Array, labels: Labels, shares: Array, *, weight: Array, intercept: Array
) -> Slopes:
    """Weighted mean of ``-log softmax(W x + b)[label]`` and its derivatives.

    Args:
        features: ``(n, k)``.
        labels: ``(n,)``.
        shares: ``(n,)`` weights that sum to one.
        weight: ``(k, k)`` or ``(k,)``.
        intercept: ``(k,)``.
    """
    nll, by_weight, by_intercept = 0.0, np.zeros_like(weight), np.zeros_like(intercept)
    for rows in row_blocks(*features.shape):
        x, share = features[rows], shares[rows]
        label = np.arange(len(x)), labels[rows]
        s = linear_scores(x, weight, intercept)
        s -= s.max(axis=1, keepdims=True)
        of_label = s[label]
        np.exp(s, out=s)
        total = s.sum(axis=1)
        nll += float(share @ (np.log(total) - of_label))
        s *= (share / total)[:, None]
        s[label] -= share
        by_weight += np.einsum("ij,ij->j", s, x) if weight.ndim == 1 else s.T @ x
        by_intercept += s.sum(axis=0)
    return Slopes(nll, by_weight, by_intercept)


def separates(features: Array, labels: Labels, weight: Array, intercept: Array) -> bool:
    """Whether the label scores higher than every other class, in every row."""
    for rows in row_blocks(*features.shape):
        s = linear_scores(features[rows], weight, intercept)
        label = np.arange(len(s)), labels[rows]
        of_label = s[label]
        s[label] = -np.inf
        if (s.max(axis=1) >= of_label).any():
            return False
    return True


# --------------------------------------------------------------------------------------
# The penalised maximum-likelihood fit of ``softmax(W x + b)``.
# --------------------------------------------------------------------------------------

# With slopes this small the loss is within 1e-7 or so of the least there is.
_FLAT = 1e-5


class LinearFit(NamedTuple):
    """The fitted ``W`` and ``b``, and how the fit ended."""

    weight: Array
    intercept: Array
    status: FitStatus


class _Problem(NamedTuple):
    features: Array
    labels: Labels
    shares: Array
    weight_penalty: Array
    intercept_penalty: float
    temperature: float

    @property
    def target(self) -> Array:
        """The weight that is not penalised: ``I / T``, as a matrix or a vector."""
        k = len(self.weight_penalty)
        identity = np.ones(k) if self.weight_penalty.ndim == 1 else np.eye(k)
        return identity / self.temperature

    def loss(self, weight: Array, intercept: Array) -> tuple[float, Array, Array]:
        """Penalised loss and its derivatives by weight and intercept."""
        here = nll_slopes(
            self.features, self.labels, self.shares, weight=weight, intercept=intercept
        )
        away = weight - self.target
        penalty = (self.weight_penalty * away**2).sum()
        penalty += self.intercept_penalty * (intercept**2).sum()
        return (
            here.nll + float(penalty),
            here.weight + 2 * self.weight_penalty * away,
            here.intercept + 2 * self.intercept_penalty * intercept,
        )


def solve_linear(
    features: Array,
    labels: Labels,
    weights: Weights | None,
    *,
    weight_penalty: Array,
    intercept_penalty: float,
    max_iter: int,
) -> LinearFit:
    """Least mean NLL of ``softmax(W x + b)`` plus ``sum Q * (W - I / T)^2 + q * sum b^2``.

    T is the temperature of least NLL, so penalties lead to temperature scaling. Convex.

    Args:
        features: ``(n, k)``.
        labels: ``(n,)``.
        weights: ``(n,)``, or ``None`` for ones.
        weight_penalty: ``Q``, ``(k, k)`` for a full matrix, ``(k,)`` for a diagonal.
        intercept_penalty: ``q``.
        max_iter: Most steps of L-BFGS.
    """
    if weights is not None:
        kept = weights > 0
        features, labels, weights = features[kept], labels[kept], weights[kept]
    shares = np.full(len(labels), 1.0) if weights is None else weights / weights.max()
    shares = shares / shares.sum()
    temperature = solve_temperature(features, labels, weights).temperature
    problem = _Problem(features, labels, shares, weight_penalty, intercept_penalty, temperature)
    weight, intercept, slope = _solve(problem, max_iter)
    status = _status(problem, weight, intercept, slope=slope, max_iter=max_iter)
    return LinearFit(weight, intercept, status)


def _solve(problem: _Problem, max_iter: int) -> tuple[Array, Array, float]:
    coordinates = coordinates_for(
        problem.features,
        problem.shares,
        softmax(problem.features, problem.temperature),
        weight_penalty=problem.weight_penalty,
        intercept_penalty=problem.intercept_penalty,
    )
    shape = problem.weight_penalty.shape
    first = np.column_stack([problem.target, np.zeros(len(problem.target))])

    def place(point: Array) -> tuple[Array, Array]:
        both = first + coordinates.leave(point.reshape(first.shape))
        return both[:, :-1].reshape(shape), both[:, -1].copy()

    def loss(point: Array) -> tuple[float, Array]:
        value, by_weight, by_intercept = problem.loss(*place(point))
        return value, coordinates.slopes(np.column_stack([by_weight, by_intercept])).ravel()

    point, slope = _minimise(loss, np.zeros(first.size), max_iter)
    return *place(point), slope


def _minimise(
    loss: Callable[[Array], tuple[float, Array]], start: Array, max_iter: int
) -> tuple[Array, float]:
    """Where L-BFGS ends, and the largest slope there."""
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "maxcor": 20}
    # No test on the loss itself: it stops falling visibly long before the slopes are zero.
    found: Any = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={**options, "ftol": 0.0, "gtol": 1e-8}
    )
    return found.x, float(np.abs(found.jac).max())


def _status(
    problem: _Problem, weight: Array, intercept: Array, *, slope: float, max_iter: int
) -> FitStatus:
    if slope > _FLAT:
        return FitStatus(
            "not-converged",
            f"the fit stopped before it converged (largest slope {slope:.1e}, wanted {_FLAT:.0e}); "
            f"raise max_iter, now {max_iter}, or a penalty if there are few rows per class.",
        )
    zero = np.zeros_like(intercept)
    for w, b in ((problem.target, zero), (weight, intercept)):
        if separates(problem.features, problem.labels, w, b):
            return FitStatus(
                "at-upper-bound",
                "a map of this kind makes no mistake on this set, so only the penalties limit its "
                "weights and keep its confidences below 1; fit on a larger or harder set.",
            )
    return FitStatus("converged")
