"""Curves on the confidence of the predicted class, and whole rows built around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import expit

from shiftcal.numerics.jit import row_blocks
from shiftcal.types import Logits, Probs, Weights

# --------------------------------------------------------------------------------------
# The beta-calibration curve of greatest likelihood (Kull, Silva Filho and Flach 2017).
# --------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------
# The slope of a smoothed cumulative curve (Gupta et al. 2021).
# --------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------
# The confidence of the predicted class, kept exact where it rounds to one.
# --------------------------------------------------------------------------------------


def top1_log_odds(logits: Logits) -> NDArray[np.float64]:
    """``log(c / (1 - c))`` of every row, ``c`` the largest softmax probability.

    Computed as the largest logit minus the log-sum-exp of the others, which keeps its digits
    where ``1 - c`` has none left.
    """
    odds = np.empty(len(logits), dtype=np.float64)
    for rows in row_blocks(*logits.shape):
        z = logits[rows].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        z[np.arange(len(z)), z.argmax(axis=1)] = -np.inf
        second = z.max(axis=1, keepdims=True)
        odds[rows] = -second[:, 0] - np.log(np.exp(z - second).sum(axis=1))
    return odds


# --------------------------------------------------------------------------------------
# Whole rows of probabilities around a given confidence of the predicted class.
# --------------------------------------------------------------------------------------

# Every other class stays this fraction below the predicted one, or the argmax could move.
MARGIN = 1e-6
# What a class is worth whose probability underflowed: nothing, but evenly so.
LEAST_SHARE = 1e-200


def lowest_top1(k: int) -> float:
    """The least that the largest of ``k`` probabilities can be, a margin above ``1 / k``."""
    return 1 / (1 + (k - 1) * (1 - MARGIN))


def rows_with_top1(logits: Logits, confidence: NDArray[np.float64]) -> Probs:
    """Rows whose predicted class has the given confidence, the rest shared as the model would.

    The predicted class (the first largest logit) gets ``c``, raised to :func:`lowest_top1`; the
    others share ``1 - c`` in proportion to their softmax probabilities, none getting more than
    ``c * (1 - 1e-6)``. What a class may not have goes to those below it, again in proportion.

    Args:
        logits: ``(n, k)``.
        confidence: ``(n,)`` in [0, 1].
    """
    n, k = logits.shape
    c = np.clip(confidence, lowest_top1(k), 1.0)
    out = np.empty((n, k), dtype=np.float64)
    for rows in row_blocks(n, k):
        out[rows] = _block(logits[rows].astype(np.float64), c[rows])
    return out


def _block(z: NDArray[np.float64], c: NDArray[np.float64]) -> Probs:
    predicted = np.arange(len(z)), z.argmax(axis=1)
    z[predicted] = -np.inf
    # Relative to the second class, so that the shares are right however small all of them are.
    shares = np.exp(z - z.max(axis=1, keepdims=True))
    np.maximum(shares, LEAST_SHARE, out=shares)
    shares[predicted] = 0.0
    rest, cap = 1.0 - c, c * (1.0 - MARGIN)
    scale = rest / shares.sum(axis=1)
    over = scale > cap
    if over.any():
        scale[over] = _capped_scale(shares[over], rest[over], cap[over])
    shares *= scale[:, None]
    np.minimum(shares, cap[:, None], out=shares)
    shares[predicted] = c
    return shares


def _capped_scale(
    shares: NDArray[np.float64], rest: NDArray[np.float64], cap: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The scale at which ``sum min(cap, scale * share)`` is ``rest``, row by row.

    With the ``j`` largest shares at the cap, the scale is what is left over the sum of the other
    shares; the right ``j`` is the first for which the next share stays under the cap.
    """
    falling = -np.sort(-shares, axis=1)[:, :-1]  # the last is the predicted class, worth 0
    left = rest[:, None] - np.arange(falling.shape[1]) * cap[:, None]
    scales = left / falling[:, ::-1].cumsum(axis=1)[:, ::-1]
    fits = scales * falling <= cap[:, None]
    fits[:, -1] = True  # at the lowest confidence all are at the cap, give or take rounding
    return scales[np.arange(len(scales)), fits.argmax(axis=1)]
