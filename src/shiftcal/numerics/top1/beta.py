"""The beta-calibration curve of greatest likelihood (Kull, Silva Filho and Flach 2017)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from shiftcal._types import Weights

Array = NDArray[np.float64]

_IDENTITY = np.array([1.0, 1.0, 0.0])
# The faces of a >= 0, b >= 0: which of a, b, m may move, the others being zero.
_FACES = ((0, 1, 2), (1, 2), (0, 2), (2,))
_MOST_STEPS = 200
_NO_LOSS = 1e-9


class BetaFit(NamedTuple):
    """``a``, ``b`` and ``m``, and whether the search ended."""

    a: float
    b: float
    m: float
    converged: bool


def beta_log_odds(log_odds: Array, a: float, b: float, m: float) -> Array:
    """``a log c - b log(1 - c) + m`` for confidences ``c`` given by their log-odds."""
    return _columns(log_odds) @ np.array([a, b, m])


def solve_beta(log_odds: Array, correct: Array, weights: Weights, *, ridge: float) -> BetaFit:
    """Least mean NLL of ``correct`` under :func:`beta_log_odds`, with ``a, b >= 0``.

    ``ridge * ((a - 1)^2 + (b - 1)^2 + m^2)`` is added, which makes the optimum unique and finite.
    The loss is convex, so a face of the quadrant is looked at only when the wider ones have their
    optimum outside; the best of those inside is the optimum.

    Args:
        log_odds: ``(n,)`` log-odds of the confidences.
        correct: ``(n,)`` zeros and ones.
        weights: ``(n,)``, positive.
        ridge: Strength of the pull towards the identity.
    """
    columns = _columns(log_odds)
    shares = weights / weights.sum()
    best, least, converged = _IDENTITY, np.inf, False
    for free in _FACES:
        found, loss, done = _newton(columns, correct, shares, ridge=ridge, free=free)
        if found[:2].min() >= 0 and loss < least:
            best, least, converged = found, loss, done
        if free == _FACES[0] and least < np.inf:
            break
    a, b, m = (float(value) for value in best)
    # A loss of zero is only approached, with coefficients that grow for ever.
    return BetaFit(a, b, m, converged and least > _NO_LOSS)


def _columns(log_odds: Array) -> Array:
    of_one = -np.logaddexp(0.0, -log_odds)
    of_zero = -np.logaddexp(0.0, log_odds)
    return np.column_stack([of_one, -of_zero, np.ones_like(log_odds)])


def _newton(
    columns: Array, correct: Array, shares: Array, *, ridge: float, free: Sequence[int]
) -> tuple[Array, float, bool]:
    """Newton's method with halved steps on the free coefficients."""
    free = list(free)
    x, target = columns[:, free], _IDENTITY[free]
    fixed = ridge * float((_IDENTITY**2).sum() - (target**2).sum())

    def loss(theta: Array) -> float:
        s = x @ theta
        nll = shares @ (np.logaddexp(0.0, s) - correct * s)
        return float(nll) + ridge * float(((theta - target) ** 2).sum()) + fixed

    theta = np.zeros(len(free))
    here, done = loss(theta), False
    for _ in range(_MOST_STEPS):
        p = expit(x @ theta)
        slope = x.T @ (shares * (p - correct)) + 2 * ridge * (theta - target)
        bend = (x * (shares * p * (1 - p))[:, None]).T @ x + 2 * ridge * np.eye(len(free))
        # Not solve: rows that are all alike leave the curvature singular if there is no ridge.
        step = np.linalg.lstsq(bend, slope, rcond=None)[0]
        theta, here, done = _halved(loss, theta, here, step=step, promise=float(slope @ step))
        if done:
            break
    out = np.zeros(3)
    out[free] = theta
    return out, here, done


def _halved(
    loss: Callable[[Array], float], theta: Array, here: float, *, step: Array, promise: float
) -> tuple[Array, float, bool]:
    """The longest halved step that keeps a tenth of its promise, and whether it is the last."""
    if promise <= 1e-13:
        # The loss no longer shows the gain, but so near the optimum a full step is right.
        return theta - step, here, True
    for halving in range(50):
        size = 0.5**halving
        there = loss(theta - size * step)
        if there <= here - 0.1 * size * promise:
            return theta - size * step, there, False
    return theta, here, False
