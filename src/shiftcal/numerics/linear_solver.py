"""The penalised maximum-likelihood fit of ``softmax(W x + b)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from shiftcal._types import FitStatus, Labels, Weights
from shiftcal.numerics.linear_coordinates import Coordinates, coordinates_for
from shiftcal.numerics.linear_softmax import all_right, nll_slopes
from shiftcal.numerics.softmax import softmax
from shiftcal.numerics.temperature import solve_temperature

Array = NDArray[np.float64]

# Slopes below this leave the loss within about 1e-9 of its least value.
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

    @property
    def target(self) -> Array:
        """The weight that is not penalised: the identity, as a matrix or a vector."""
        k = len(self.weight_penalty)
        return np.ones(k) if self.weight_penalty.ndim == 1 else np.eye(k)

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
    """Least mean NLL of ``softmax(W x + b)`` plus ``sum Q * (W - I)^2 + q * sum b^2``.

    Convex; started from the best multiple of the identity.

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
    problem = _Problem(features, labels, shares, weight_penalty, intercept_penalty)
    start = 1 / solve_temperature(features, labels, weights).temperature
    solve = _solve_diagonal if weight_penalty.ndim == 1 else _solve_matrix
    weight, intercept, slope = solve(problem, start, max_iter)
    status = _status(problem, weight, intercept, slope=slope, max_iter=max_iter)
    return LinearFit(weight, intercept, status)


def _solve_diagonal(problem: _Problem, start: float, max_iter: int) -> tuple[Array, Array, float]:
    k = problem.features.shape[1]

    def loss(point: Array) -> tuple[float, Array]:
        value, by_weight, by_intercept = problem.loss(point[:k], point[k:])
        return value, np.concatenate([by_weight, by_intercept])

    point, slope = _minimise(loss, np.repeat([start, 0.0], k), max_iter)
    return point[:k], point[k:], slope


def _solve_matrix(problem: _Problem, start: float, max_iter: int) -> tuple[Array, Array, float]:
    k = problem.features.shape[1]
    coordinates = _coordinates(problem, start)

    def loss(point: Array) -> tuple[float, Array]:
        both = coordinates.leave(point.reshape(k, k + 1))
        value, by_weight, by_intercept = problem.loss(both[:, :k], both[:, k])
        slopes = coordinates.slopes(np.column_stack([by_weight, by_intercept]))
        return value, slopes.ravel()

    first = coordinates.enter(np.column_stack([start * np.eye(k), np.zeros(k)]))
    point, slope = _minimise(loss, first.ravel(), max_iter)
    both = coordinates.leave(point.reshape(k, k + 1))
    return np.ascontiguousarray(both[:, :k]), both[:, k].copy(), slope


def _coordinates(problem: _Problem, start: float) -> Coordinates:
    probs = softmax(problem.features, 1 / start)
    curvature = float(problem.shares @ (probs * (1 - probs)).mean(axis=1))
    columns = problem.weight_penalty.mean(axis=0)
    return coordinates_for(
        problem.features,
        problem.shares,
        # An error-free set has none at the start, and the coordinates would not be any.
        curvature=max(curvature, 1e-3 / probs.shape[1]),
        penalties=np.append(columns, problem.intercept_penalty),
    )


def _minimise(
    loss: Callable[[Array], tuple[float, Array]], start: Array, max_iter: int
) -> tuple[Array, float]:
    """Where L-BFGS ends, and the largest slope there."""
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "maxcor": 20}
    # No test on the loss itself: it stops falling visibly long before the slopes are zero.
    found: Any = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={**options, "ftol": 0.0, "gtol": 1e-9}
    )
    return found.x, float(np.abs(found.jac).max())


def _status(
    problem: _Problem, weight: Array, intercept: Array, *, slope: float, max_iter: int
) -> FitStatus:
    if slope > _FLAT:
        return FitStatus(
            "not-converged",
            f"the fit did not converge in {max_iter} iterations (largest slope {slope:.1e}, "
            f"wanted {_FLAT:.0e}); raise max_iter, or a penalty if there are few rows per class.",
        )
    if all_right(problem.features, problem.labels, weight, intercept):
        return FitStatus(
            "at-upper-bound",
            "the fitted map makes no mistake on this set, so only the ridge keeps its weights "
            "finite and its confidences below 1; fit on a larger or harder set.",
        )
    return FitStatus("converged")
