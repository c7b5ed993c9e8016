"""The penalised maximum-likelihood fit of ``softmax(W x + b)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from shiftcal._types import FitStatus, Labels, Weights
from shiftcal.numerics.linear.coordinates import coordinates_for
from shiftcal.numerics.linear.softmax import nll_slopes, separates
from shiftcal.numerics.softmax import softmax
from shiftcal.numerics.temperature.likelihood import solve_temperature

Array = NDArray[np.float64]

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
