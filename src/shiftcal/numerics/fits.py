"""Fits of calibration maps: linear softmax, curves on confidence, bins, mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.numerics.blocks import row_blocks
from shiftcal.numerics.softmax import softmax
from shiftcal.numerics.temperature import FitStatus, solve_temperature
from shiftcal.types import Labels, Logits, Probs, Weights

Array = NDArray[np.float64]

# --------------------------------------------------------------------------------------
# Coordinates in which the likelihood of ``softmax(W x + b)`` is about equally curved all round.
#
# Logits of a network are strongly correlated; in its own coordinates the problem takes a
# quasi-Newton method tens of times the steps, or never ends.
# --------------------------------------------------------------------------------------

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
) -> tuple[float, Array, Array]:
    """Weighted mean of ``-log softmax(W x + b)[label]``, its derivatives by ``W`` and by ``b``.

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
    return nll, by_weight, by_intercept


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


def solve_linear(
    features: Array,
    labels: Labels,
    weights: Weights | None,
    *,
    weight_penalty: Array,
    intercept_penalty: float,
    max_iter: int,
) -> tuple[Array, Array, FitStatus]:
    """``W`` and ``b`` of ``softmax(W x + b)``, and how the fit ended.

    They have the least mean NLL plus ``sum Q * (W - I / T)^2 + q * sum b^2``, which is convex. T is
    the temperature of least NLL, so penalties lead to temperature scaling.

    Args:
        features: ``(n, k)``.
        labels: ``(n,)``.
        weights: ``(n,)``, or ``None`` for ones.
        weight_penalty: ``Q``, ``(k, k)`` for a full matrix, ``(k,)`` for a diagonal.
        intercept_penalty: ``q``.
        max_iter: Most steps of L-BFGS.
    """
    from scipy.optimize import minimize

    if weights is not None:
        kept = weights > 0
        features, labels, weights = features[kept], labels[kept], weights[kept]
    shares = np.full(len(labels), 1.0) if weights is None else weights / weights.max()
    shares = shares / shares.sum()
    temperature = solve_temperature(features, labels, weights).temperature
    k = len(weight_penalty)
    # The weight that is not penalised: I / T, as a matrix or a vector.
    target = (np.ones(k) if weight_penalty.ndim == 1 else np.eye(k)) / temperature
    coordinates = coordinates_for(
        features,
        shares,
        softmax(features, temperature),
        weight_penalty=weight_penalty,
        intercept_penalty=intercept_penalty,
    )
    first = np.column_stack([target, np.zeros(k)])

    def place(point: Array) -> tuple[Array, Array]:
        both = first + coordinates.leave(point.reshape(first.shape))
        return both[:, :-1].reshape(target.shape), both[:, -1].copy()

    def loss(point: Array) -> tuple[float, Array]:
        weight, intercept = place(point)
        nll, by_weight, by_intercept = nll_slopes(
            features, labels, shares, weight=weight, intercept=intercept
        )
        away = weight - target
        penalty = (weight_penalty * away**2).sum()
        penalty += intercept_penalty * (intercept**2).sum()
        by_weight = by_weight + 2 * weight_penalty * away
        by_intercept = by_intercept + 2 * intercept_penalty * intercept
        slopes = coordinates.slopes(np.column_stack([by_weight, by_intercept])).ravel()
        return nll + float(penalty), slopes

    # No test on the loss itself: it stops falling visibly long before the slopes are zero.
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "maxcor": 20, "ftol": 0.0, "gtol": 1e-8}
    start = np.zeros(first.size)
    found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    weight, intercept = place(found.x)
    slope = float(np.abs(found.jac).max())
    status = FitStatus("converged")
    if slope > _FLAT:
        status = FitStatus(
            "not-converged",
            f"the fit stopped before it converged (largest slope {slope:.1e}, wanted {_FLAT:.0e}); "
            f"raise max_iter, now {max_iter}, or a penalty if there are few rows per class.",
        )
    elif separates(features, labels, target, np.zeros(k)) or separates(
        features, labels, weight, intercept
    ):
        status = FitStatus(
            "at-upper-bound",
            "a map of this kind makes no mistake on this set, so only the penalties limit its "
            "weights and keep its confidences below 1; fit on a larger or harder set.",
        )
    return weight, intercept, status


# --------------------------------------------------------------------------------------
# The beta-calibration curve of greatest likelihood (Kull, Silva Filho and Flach 2017).
# --------------------------------------------------------------------------------------

_IDENTITY = np.array([1.0, 1.0, 0.0])
# The faces of a >= 0, b >= 0: which of a, b, m may move, the others being zero.
_FACES = ((0, 1, 2), (1, 2), (0, 2), (2,))
_MOST_STEPS = 200
_NO_LOSS = 1e-9


def beta_log_odds(log_odds: Array, a: float, b: float, m: float) -> Array:
    """``a log c - b log(1 - c) + m`` for confidences ``c`` given by their log-odds."""
    return _columns(log_odds) @ np.array([a, b, m])


def solve_beta(
    log_odds: Array, correct: Array, weights: Weights, *, ridge: float
) -> tuple[Array, bool]:
    """``(a, b, m)`` of :func:`beta_log_odds`, ``a, b >= 0``, and whether the search ended.

    They have the least mean NLL of ``correct`` plus ``ridge * ((a - 1)^2 + (b - 1)^2 + m^2)``, so
    that the optimum is unique and finite. The loss is convex: a face of the quadrant is looked at
    only when the wider ones have their optimum outside; the best of those inside is the optimum.

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
    # A loss of zero is only approached, with coefficients that grow for ever.
    return best, converged and least > _NO_LOSS


def _columns(log_odds: Array) -> Array:
    of_one = -np.logaddexp(0.0, -log_odds)
    of_zero = -np.logaddexp(0.0, log_odds)
    return np.column_stack([of_one, -of_zero, np.ones_like(log_odds)])


def _newton(
    columns: Array, correct: Array, shares: Array, *, ridge: float, free: Sequence[int]
) -> tuple[Array, float, bool]:
    """Newton's method with halved steps on the free coefficients."""
    from scipy.special import expit

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
    from scipy.interpolate import CubicSpline

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


# --------------------------------------------------------------------------------------
# Bins of about equal weight that never part equal values.
# --------------------------------------------------------------------------------------


class Distinct(NamedTuple):
    """The distinct values in ascending order, each with the sums over its rows.

    Attributes:
        value: ``(g,)`` ascending.
        weight: ``(g,)`` sum of weights, all positive, together one.
        correct: ``(g,)`` weighted sum of correctness.
    """

    value: Array
    weight: Array
    correct: Array


def distinct(values: Array, correct: Array, weights: Weights) -> Distinct:
    """Rows of equal value gathered.

    Args:
        values: ``(n,)``.
        correct: ``(n,)`` zeros and ones.
        weights: ``(n,)``, positive.
    """
    value, group = np.unique(values, return_inverse=True)
    shares = weights / weights.sum()
    weight: Array = np.bincount(group, shares).astype(np.float64)
    return Distinct(value, weight, np.bincount(group, shares * correct).astype(np.float64))


def equal_weight_bins(groups: Distinct, n_bins: int) -> tuple[Array, Array]:
    """Inner edges and mean correctness of at most ``n_bins`` bins of about equal weight.

    With the weight laid out from 0 to ``n_bins`` in order of value, a value belongs to the bin in
    which the middle of its own weight lies; so equal values stay together, and without ties the
    numbers of rows differ by one at the most. An edge is the middle between the last value of a
    bin and the first of the next. Bins that no value falls into do not exist.
    """
    middle = np.cumsum(groups.weight) - groups.weight / 2
    place = np.floor(middle * n_bins)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(place)) + 1])
    edges = (groups.value[starts[1:] - 1] + groups.value[starts[1:]]) / 2
    totals = np.add.reduceat(groups.weight, starts)
    return edges, np.add.reduceat(groups.correct, starts) / totals


# --------------------------------------------------------------------------------------
# Maximum-likelihood weights of a mixture whose parts are known.
# --------------------------------------------------------------------------------------


def solve_mixture(densities: Array, weights: Weights | None) -> tuple[Array, float]:
    """The point of the simplex of greatest weighted mean of ``log(densities @ point)``.

    The likelihood is concave, so any local optimum is the best one. Its distance from there is
    at most ``max_j mean(f_j / f) - 1``, with ``f_j`` the densities of part j and ``f`` those of
    the mixture, which is returned as well.

    Args:
        densities: ``(n, m)``, positive: what each part gives to what was seen.
        weights: ``(n,)``, or ``None`` for ones.
    """
    from scipy.optimize import minimize

    n, m = densities.shape
    shares = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()

    def loss(point: Array) -> tuple[float, Array]:
        mixed = np.maximum(densities @ point, np.finfo(np.float64).tiny)
        return -float(shares @ np.log(mixed)), -densities.T @ (shares / mixed)

    found: Any = minimize(
        loss,
        np.full(m, 1.0 / m),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * m,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    point = np.where(found.x < 1e-12, 0.0, found.x)  # what the solver leaves of a zero
    point = point / point.sum()
    return point, float((-loss(point)[1]).max() - 1.0)
