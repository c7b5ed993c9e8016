"""One temperature by maximum likelihood or least Brier score: search, moments, bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.numerics.blocks import block_sums, in_parts, kernel_data, kernel_for, row_blocks
from shiftcal.numerics.softmax import entropy
from shiftcal.types import Labels, Logits, Weights

Data: TypeAlias = tuple[Logits, Labels, Weights | None]


@dataclass(frozen=True)
class FitStatus:
    """How a fit ended.

    Attributes:
        code: ``"converged"``, ``"at-lower-bound"``, ``"at-upper-bound"`` or ``"not-converged"``.
        message: What happened and why, in a sentence; empty when there is nothing to add.
    """

    code: Literal["converged", "at-lower-bound", "at-upper-bound", "not-converged"]
    message: str = ""

    @property
    def converged(self) -> bool:
        """Whether the optimum was reached inside the allowed range."""
        return self.code == "converged"


class TemperatureSolution(NamedTuple):
    """Where the search for a temperature ended.

    Attributes:
        temperature: The temperature, inside the range that was allowed.
        status: Converged, or at which end of the range and why.
        loss: What was minimised, there: mean negative log-likelihood or Brier score, weighted if
            weights were given.
    """

    temperature: float
    status: FitStatus
    loss: float


# --------------------------------------------------------------------------------------
# Why a temperature stopped at an end of its range.
# --------------------------------------------------------------------------------------

_ERROR_FREE = (
    "the set is error-free (every label is a largest logit of its row), so sharper is always "
    "better. Calibrate on data the model was not trained on"
)
_CHANCE = (
    "the model is no better than chance on this set, so nothing beats a uniform guess. Check that "
    "labels and columns are in the same order"
)
_CONSTANT = "every row of logits is constant, so all temperatures give the same uniform guess"
_BELOW = "the fit is still improving there, so the best temperature is lower yet"
_ABOVE = "the fit is still improving there, so the best temperature is higher yet"


def end_status(
    t_range: tuple[float, float], *, upper: bool, flat: bool, error_free: bool, gain: float
) -> FitStatus:
    """Status of a fit that stopped at an end of ``t_range``.

    Args:
        t_range: Smallest and largest temperature allowed.
        upper: Whether it is the upper end.
        flat: Whether every row of logits that has weight holds one number only.
        error_free: Whether every label of such a row is a largest logit of it.
        gain: Mean of ``z[label] - mean z``, of any scale: if positive, some temperature beats a
            uniform guess.
    """
    stopped = "the temperature stopped at"
    if upper:
        why = _CONSTANT if flat else _ABOVE if gain > 0 else _CHANCE
        text = f"{stopped} {t_range[1]:g}, the upper end of t_range: {why}."
        return FitStatus("at-upper-bound", text)
    why = _ERROR_FREE if error_free else _BELOW
    return FitStatus(
        "at-lower-bound", f"{stopped} {t_range[0]:g}, the lower end of t_range: {why}."
    )


def _facts(data: Data) -> dict[str, Any]:
    """What :func:`end_status` needs to know of the rows."""
    logits, labels, weights = data
    flat, error_free, gain = True, True, 0.0
    for rows in row_blocks(*logits.shape):
        z = logits[rows]
        w = np.ones(len(z)) if weights is None else weights[rows]
        top, of_label = z.max(axis=1), z[np.arange(len(z)), labels[rows]]
        flat = flat and not (w * (top > z.min(axis=1))).any()
        error_free = error_free and not (w * (of_label < top)).any()
        gain += w @ (of_label - z.mean(axis=1, dtype=np.float64))
    return {"flat": flat, "error_free": error_free, "gain": gain}


def _at_end(
    data: Data, t_range: tuple[float, float], look: Callable[[Data, float], Any], *, upper: bool
) -> TemperatureSolution:
    temperature = t_range[upper]
    status = end_status(t_range, upper=upper, **_facts(data))
    return TemperatureSolution(temperature, status, look(data, 1 / temperature).loss)


# --------------------------------------------------------------------------------------
# The Brier score of scaled logits and its slope in the scale.
# --------------------------------------------------------------------------------------

_LN2 = math.log(2.0)


class BrierSlope(NamedTuple):
    """Weighted means over rows.

    Attributes:
        loss: Mean of ``sum over k of (p_k - [label = k])**2``.
        slope: Its derivative by the logarithm of beta.
    """

    loss: float
    slope: float


def brier_slope(data: Data, beta: float) -> BrierSlope:
    """Score and slope at ``beta``, the inverse temperature.

    Args:
        data: ``(n, k)`` logits, ``(n,)`` labels, ``(n,)`` weights or ``None`` for ones.
        beta: Inverse temperature.
    """
    _, sums = block_sums("brier", beta / _LN2, data, columns=3)
    score, slope = (float(s / sums[2]) for s in sums[:2])
    return BrierSlope(score, 2 * _LN2 * slope)


# --------------------------------------------------------------------------------------
# The temperature of least Brier score.
# --------------------------------------------------------------------------------------

# Neighbours differ by a third in temperature; the score varies slower than that.
_GRID = 33
_CLOSE = 1e-11


def solve_brier_temperature(
    logits: Logits,
    labels: Labels,
    weights: Weights | None = None,
    *,
    t_range: tuple[float, float] = (0.01, 100.0),
) -> TemperatureSolution:
    """The T that minimises the mean of ``sum over k of (softmax(z / T)_k - [label = k])**2``.

    The score may have several minima in T. The slope's sign on a grid shows where they are; each
    is found to full precision, and the lowest is returned, or an end of the range that is lower.

    Args:
        logits: ``(n, k)``; copied once if they are not in C order.
        labels: ``(n,)``.
        weights: ``(n,)`` of any scale, or ``None`` for ones.
        t_range: Smallest and largest temperature allowed.
    """
    from scipy.optimize import brentq

    data = kernel_data(logits, labels, weights)
    # Signs are those of the derivative by -log T = log beta, from the highest temperature down.
    grid = np.linspace(-math.log(t_range[1]), -math.log(t_range[0]), _GRID)
    slopes = np.array([brier_slope(data, math.exp(u)).slope for u in grid])
    steep = np.flatnonzero(slopes)
    if len(steep) == 0:
        return _at_end(data, t_range, brier_slope, upper=True)
    minima = [grid[0]] if slopes[steep[0]] > 0 else []
    for i, j in pairwise(steep):
        if slopes[i] < 0 < slopes[j]:
            minima.append(
                brentq(
                    lambda u: brier_slope(data, math.exp(u)).slope, grid[i], grid[j], xtol=_CLOSE
                )
            )
    if slopes[steep[-1]] < 0:
        minima.append(grid[-1])
    best = min(minima, key=lambda u: brier_slope(data, math.exp(u)).loss)
    if best in (grid[0], grid[-1]):
        return _at_end(data, t_range, brier_slope, upper=bool(best == grid[0]))
    return TemperatureSolution(
        math.exp(-best), FitStatus("converged"), brier_slope(data, math.exp(best)).loss
    )


# --------------------------------------------------------------------------------------
# Moments of scaled logits under their own softmax: the likelihood's value and derivatives.
# --------------------------------------------------------------------------------------


class Moments(NamedTuple):
    """Weighted means over rows, with ``x = beta * (z - max z)`` and expectations under softmax.

    The derivatives are by ``r`` in ``beta * (1 + r)`` at ``r = 0``. Being relative they stay the
    same when the logits are divided by what beta is multiplied with.

    Attributes:
        beta: The inverse temperature: the one asked for, rounded to the logits' precision.
        loss: Mean of ``log sum exp(x) - x[label]``.
        slope: Mean of ``E[x] - x[label]``.
        curvature: Mean of the variance of ``x``.
        third: Mean of the third central moment of ``x``.
        regret: Mean of ``-x[label]``: zero if every label is a maximum of its row.
    """

    beta: float
    loss: float
    slope: float
    curvature: float
    third: float
    regret: float


def softmax_moments(data: Data, beta: float, *, every: int = 1) -> Moments | None:
    """The moments at ``beta``; ``None`` if the rows looked at weigh nothing.

    Sums are in float64 and in an order of their own, so the result does not depend on how many
    threads there are.

    Args:
        data: ``(n, k)`` logits, ``(n,)`` labels, ``(n,)`` weights or ``None`` for ones.
        beta: Inverse temperature.
        every: Look at every such block of 128 rows only, for a first guess on large data.
    """
    b, sums = block_sums("moments", beta / _LN2, data, columns=6, every=every)
    total = sums[5]
    if total <= 0:
        return None
    log_sum, mean, variance, third, regret = (float(s / total) for s in sums[:5])
    beta = b * _LN2
    return Moments(
        beta,
        loss=log_sum + beta * regret,
        slope=_LN2 * mean + beta * regret,
        curvature=_LN2**2 * variance,
        third=_LN2**3 * third,
        regret=beta * regret,
    )


# --------------------------------------------------------------------------------------
# The point at which an increasing slope is zero, by few and expensive looks at it.
# --------------------------------------------------------------------------------------

# The error of Halley's step is cubic: from a step this small on, beta is right to 1e-10.
_SMALL_STEP = 3e-4
# A bracket this narrow holds nothing but rounding errors.
_CLOSED = 1e-9


class Found(NamedTuple):
    """Where a search ended.

    Attributes:
        beta: The zero, or the end of the range that the slope points to.
        here: The moments at the last point looked at, beta or close to it.
        converged: Whether beta is a zero.
    """

    beta: float
    here: Moments | None
    converged: bool


def find_zero(
    look: Callable[[float], Moments | None], ends: tuple[float, float], start: float
) -> Found:
    """The inverse temperature between ``ends`` at which the slope of the likelihood is zero.

    Halley's steps, kept inside a bracket; where they leave it or do not shrink to half, the
    bracket is halved, so the search ends. An end of the range is looked at only when a step leads
    beyond it. Without errors among the labels there is no zero, and the search ends at once.
    """
    low, high = ends
    tried = set()
    beta, last = start, math.inf
    while True:
        here = look(beta)
        if here is None or here.regret == 0 or _points_out(here, beta, ends):
            return Found(beta, here, converged=False)
        tried.add(beta)
        step = step_to_zero(here)
        wanted = here.beta * (1 + step)
        low, high = (low, here.beta) if here.slope > 0 else (here.beta, high)
        within = ends[0] < wanted < ends[1]
        if (abs(step) <= _SMALL_STEP and within) or high / low - 1 <= _CLOSED:
            return Found(min(max(wanted, low), high), here, converged=True)
        end = ends[here.slope < 0]
        if low < wanted < high and abs(step) <= last / 2:
            beta, last = wanted, abs(step)
        elif not within and end not in tried:
            beta, last = end, math.inf
        else:
            beta, last = math.sqrt(low * high), math.inf


def step_to_zero(here: Moments) -> float:
    """Halley's relative step in beta to where the slope is zero; infinite if that is unknown."""
    below = 2 * here.curvature**2 - here.slope * here.third
    if below > 0:
        return -2 * here.slope * here.curvature / below
    return math.copysign(math.inf, -here.slope)


def _points_out(here: Moments, beta: float, ends: tuple[float, float]) -> bool:
    return (beta == ends[0] and here.slope >= 0) or (beta == ends[1] and here.slope <= 0)


# --------------------------------------------------------------------------------------
# The temperature of least negative log-likelihood.
# --------------------------------------------------------------------------------------

# For a first guess at most every 32nd block of rows is looked at, and some 6,000 rows at least:
# with them the guess is good to one per cent.
_SPARSE = 32
_ENOUGH = 6144
# By how much some rows may correct a step that was found with all of them; a fraction of that is
# then left as the error. In double precision all rows are looked at once more instead.
_CORRECTION = {"float32": 2e-6, "float64": 1e-10}


def solve_temperature(
    logits: Logits,
    labels: Labels,
    weights: Weights | None = None,
    *,
    t_range: tuple[float, float] = (0.01, 100.0),
) -> TemperatureSolution:
    """The T that minimises the mean of ``-log softmax(z / T)[label]``.

    The likelihood is convex in 1/T, so where it has no slope it is least. On large data the
    search begins on some of the rows; one or two looks at all of them then decide.

    Args:
        logits: ``(n, k)``; copied once if they are not in C order.
        labels: ``(n,)``.
        weights: ``(n,)`` of any scale, or ``None`` for ones.
        t_range: Smallest and largest temperature allowed.
    """
    data = kernel_data(logits, labels, weights)
    ends = (1 / t_range[1], 1 / t_range[0])
    start = min(max(1.0, ends[0]), ends[1])
    every = min(_SPARSE, len(logits) // _ENOUGH)
    if every > 1:
        guess = find_zero(lambda beta: softmax_moments(data, beta, every=every), ends, start)
        start = guess.beta
        if guess.converged and guess.here is not None:
            start, nll = _one_look(data, guess.here, every=every)
            if nll is not None and ends[0] < start < ends[1]:
                return TemperatureSolution(1 / start, FitStatus("converged"), nll)
            start = min(max(start, ends[0]), ends[1])
    found = find_zero(lambda beta: softmax_moments(data, beta), ends, start)
    assert found.here is not None, "weights are not zero everywhere"
    if found.converged:
        nll = _nll(found.here, found.beta / found.here.beta - 1)
        return TemperatureSolution(1 / found.beta, FitStatus("converged"), nll)
    upper = _facts(data)["flat"] if found.here.regret == 0 else found.here.slope > 0
    return _at_end(data, t_range, softmax_moments, upper=upper)


def _one_look(data: Data, some: Moments, *, every: int) -> tuple[float, float | None]:
    """The inverse temperature after one look at all rows; the NLL too if it needs no second.

    All rows give the slope and its first two derivatives at one point. How the slope continues
    from there is taken from some rows, if they look like all in what both know: what they add is
    tiny, and they know it to a few per cent.
    """
    whole = softmax_moments(data, some.beta)
    assert whole is not None
    step = step_to_zero(whole)
    slope, curvature, third = (a - b for a, b in zip(whole[2:5], some[2:5], strict=True))
    alike = max(abs(curvature), abs(third)) < 0.2 * some.curvature
    there = None
    if alike and abs(step) < 0.1:
        there = softmax_moments(data, whole.beta * (1 + step), every=every)
    if there is None:
        return whole.beta * (1 + step), None
    r = there.beta / whole.beta - 1
    slope += there.slope / (1 + r) + curvature * r + third * r**2 / 2
    r -= slope / (whole.curvature + whole.third * r)
    enough = abs(r - step) <= _CORRECTION[data[0].dtype.name]
    return whole.beta * (1 + r), _nll(whole, r) if enough else None


def _nll(here: Moments, r: float) -> float:
    """The likelihood a small relative step away."""
    return here.loss + r * (here.slope + r * (here.curvature / 2 + r * here.third / 6))


# --------------------------------------------------------------------------------------
# A temperature for every row, a power of its entropy, of least negative log-likelihood.
# --------------------------------------------------------------------------------------

Array = NDArray[np.float64]

# Below this share of the largest entropy there is, rows count as equally confident.
LEAST_ENTROPY = 1e-6
# Entropies that all lie within one per cent of another say nothing about a power of them.
_LEAST_SPREAD = 0.01
# Powers to start with, apart from none: the likelihood may have more than one valley.
_POWERS = (0.3, -0.3)
# Rows that are enough to tell the valleys apart.
_ENOUGH_ROWS = 4000
# With slopes this small the loss is within 1e-9 or so of the bottom of its valley.
_FLAT = 1e-5


class PowerFit(NamedTuple):
    """``log T = log_scale + power * log h``, and how the fit ended."""

    log_scale: float
    power: float
    status: FitStatus


class _Problem(NamedTuple):
    """Rows, and where between the least (0) and the greatest (1) entropy each of them lies."""

    logits: Logits
    labels: Labels
    shares: Array
    place: Array

    def some(self, every: int) -> _Problem:
        """The same for every such row only."""
        rows = slice(None, None, every)
        shares = self.shares[rows]
        labels, place = self.labels[rows], self.place[rows]
        return _Problem(self.logits[rows], labels, shares / shares.sum(), place)

    def loss(self, ends: Array) -> tuple[float, Array]:
        """Mean NLL and its slopes by log T at the least and at the greatest entropy."""
        beta = np.exp(-(ends[0] * (1 - self.place) + ends[1] * self.place))
        nll, slopes = 0.0, np.zeros(2)
        for rows in row_blocks(*self.logits.shape):
            z = self.logits[rows].astype(np.float64)
            z -= z.max(axis=1, keepdims=True)
            of_label = z[np.arange(len(z)), self.labels[rows]]
            e = np.exp(beta[rows, None] * z)
            total = e.sum(axis=1)
            nll += float(self.shares[rows] @ (np.log(total) - beta[rows] * of_label))
            by_log_t = of_label - np.einsum("ij,ij->i", e, z) / total
            by_log_t *= beta[rows] * self.shares[rows]
            slopes += by_log_t @ (1 - self.place[rows]), by_log_t @ self.place[rows]
        return nll, slopes


def log_relative_entropy(logits: Logits) -> Array:
    """``log h`` of every row: entropy of softmax over its greatest, ``log k``; 1e-6 at least."""
    h = entropy(logits) / np.log(logits.shape[1])
    return np.asarray(np.log(np.clip(h, LEAST_ENTROPY, 1.0)))


def solve_power(
    logits: Logits,
    labels: Labels,
    weights: Weights | None,
    *,
    t_range: tuple[float, float],
) -> PowerFit:
    """The ``T = exp(a) h^b`` of least mean NLL; on these rows T stays in ``t_range``.

    Not convex: the search begins at ``b = 0``, temperature scaling, and at a power of either sign,
    and the best end is taken. Where one temperature has no optimum in the range, or all rows have
    about one entropy, ``b`` is 0.

    Args:
        logits: ``(n, k)``.
        labels: ``(n,)``.
        weights: ``(n,)`` of any scale, or ``None`` for ones.
        t_range: Smallest and largest temperature allowed.
    """
    if weights is not None:
        kept = weights > 0
        logits, labels, weights = logits[kept], labels[kept], weights[kept]
    plain = solve_temperature(logits, labels, weights, t_range=t_range)
    centre = float(np.log(plain.temperature))
    log_h = log_relative_entropy(logits)
    low, high = float(log_h.min()), float(log_h.max())
    if not plain.status.converged or high - low < _LEAST_SPREAD:
        return PowerFit(centre, 0.0, plain.status)
    shares = np.ones(len(labels)) if weights is None else weights / weights.max()
    problem = _Problem(logits, labels, shares / shares.sum(), (log_h - low) / (high - low))
    middle = float(problem.shares @ log_h)
    starts = [centre + b * (np.array([low, high]) - middle) for b in (0.0, *_POWERS)]
    ends, status = _best(problem, starts, t_range)
    power = float(ends[1] - ends[0]) / (high - low)
    return PowerFit(float(ends[0]) - power * low, power, status)


def _best(
    problem: _Problem, starts: list[Array], t_range: tuple[float, float]
) -> tuple[Array, FitStatus]:
    """The best end of searches on some rows, and of none, followed to its bottom on all."""
    sparse = problem.some(max(1, len(problem.labels) // _ENOUGH_ROWS))
    candidates = [starts[0], *(_search(sparse, start, t_range).x for start in starts)]
    found = _search(problem, min(candidates, key=lambda ends: problem.loss(ends)[0]), t_range)
    return found.x, _status(found.x, found.jac, t_range)


def _search(problem: _Problem, start: Array, t_range: tuple[float, float]) -> Any:
    from scipy.optimize import minimize

    low, high = np.log(t_range)
    # No test on the loss itself: it stops falling visibly long before the slopes are zero.
    options = {"ftol": 0.0, "gtol": 1e-9, "maxiter": 200}
    return minimize(
        problem.loss,
        np.clip(start, low, high),
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, high)] * 2,
        options=options,
    )


def _status(ends: Array, slopes: Array, t_range: tuple[float, float]) -> FitStatus:
    low, high = np.log(t_range)
    for end, which in zip(ends, ("least", "greatest"), strict=True):
        why = f"the temperature of the rows of {which} entropy stopped at"
        what = "fit on more rows, or use the temperature map"
        if end <= low:
            text = f"{why} {t_range[0]:g}, the lower end of t_range; {what}."
            return FitStatus("at-lower-bound", text)
        if end >= high:
            text = f"{why} {t_range[1]:g}, the upper end of t_range; {what}."
            return FitStatus("at-upper-bound", text)
    slope = float(np.abs(slopes).max())
    if slope > _FLAT:
        return FitStatus(
            "not-converged",
            f"the fit stopped before it converged (largest slope {slope:.1e}, wanted {_FLAT:.0e}); "
            "use the temperature map on this set.",
        )
    return FitStatus("converged")


# --------------------------------------------------------------------------------------
# The likelihood at every temperature, from moments at a ladder of them.
#
# With ``u = log beta`` and ``x = beta (z - max z)``, the mean negative log-likelihood has the slope
# ``g(u) = a(u) + R e^u``, where ``a`` is the mean of ``E[x]`` and ``R`` that of ``max z -
# z[label]``.
# ``a`` is bounded and smooth. Its derivatives are ``a' = E + V`` and ``a'' = E + 3V + M`` with the
# means E, V and M of the first three central moments, so that between two neighbours of the ladder
# it is a polynomial of the fifth degree that fits all three at both. Steps are ``log(2) / 8``: what
# is left is below ``(log(2) / 16)^6 / 720``, 9e-12, times the sixth derivative.
# --------------------------------------------------------------------------------------

LANES = 8
OCTAVES = 14
# Inverse temperatures from 1/128 to 117: more than any range of temperatures in use.
BETAS = 2.0 ** (np.arange(OCTAVES * LANES) / LANES - OCTAVES // 2)
# Moments are summed as whole multiples of 2**-44. None is above 2**12 with a million classes, so
# that sixty-four of them fit into 64 bits.
FRACTION_BITS = 44
_STEP = math.log(2.0) / LANES
_FIRST = math.log(BETAS[0])
# Logits worth a part of their own.
_PART = 1 << 15


def ladder_sums(
    logits: Logits,
) -> tuple[list[int], NDArray[np.float64], NDArray[np.float64]]:
    """Sums over rows of the first three central moments at every inverse temperature.

    Returns:
        The sums in units of ``2**-44``, moment after moment; for each row ``log sum exp(z - max
        z)``, and the sum of the squares of its softmax.
    """
    z = np.ascontiguousarray(logits)
    kernel, betas = kernel_for("ladder_sums", z), BETAS.reshape(OCTAVES, LANES)
    log_sums, squares = np.empty(len(z)), np.empty(len(z))
    found: list[NDArray[np.int64]] = []

    def work(start: int, stop: int) -> None:
        sums = np.zeros((2, 3, OCTAVES, LANES), np.int64)
        part = slice(start, stop)
        kernel(z[part], betas, sums[0], sums[1], log_sums[part], squares[part])
        found.append(sums)

    in_parts(work, len(z), least=-(-_PART // z.shape[1]))
    high, low = sum(found).reshape(2, -1).tolist()  # type: ignore[union-attr]
    return [(h << 32) + x for h, x in zip(high, low, strict=True)], log_sums, squares


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Mean negative log-likelihood as a function of the inverse temperature.

    Attributes:
        moments: ``(3, m)`` means of the first three central moments at ``BETAS``.
        regret: Mean of ``max z - z[label]``.
        at_one: The likelihood at temperature one.
    """

    moments: NDArray[np.float64]
    regret: float
    at_one: float

    def slope(self, beta: float) -> float:
        """Its derivative by ``log beta``."""
        piece, t = self._where(beta)
        return float(np.polyval(self._piece(piece)[::-1], t)) + self.regret * beta

    def nll(self, beta: float) -> float:
        """Its value: the slope, integrated from temperature one on."""
        one, last = OCTAVES // 2 * LANES, len(BETAS) - 2
        piece, t = self._where(beta)
        sign = 1 if beta >= 1 else -1
        whole = [
            self._integral(j, 1.0) for j in range(min(piece, one), min(max(piece, one), last + 1))
        ]
        change = sign * math.fsum(whole) + self._integral(piece, t)
        return self.at_one + change + self.regret * (beta - 1)

    def minimum(self, ends: tuple[float, float]) -> float | None:
        """The inverse temperature of no slope between ``ends``; ``None`` if there is none.

        The likelihood is convex in the inverse temperature: there is one sign change at most.
        """
        low, high = ends
        if self.slope(low) >= 0 or self.slope(high) <= 0:
            return None
        for _ in range(80):
            middle = math.sqrt(low * high)
            if not low < middle < high:
                break
            low, high = (middle, high) if self.slope(middle) < 0 else (low, middle)
        return math.sqrt(low * high)

    def _where(self, beta: float) -> tuple[int, float]:
        at = (math.log(beta) - _FIRST) / _STEP
        piece = min(max(int(at), 0), len(BETAS) - 2)
        return piece, at - piece

    def _integral(self, piece: int, t: float) -> float:
        powers = np.arange(1, 7)
        return _STEP * float(np.sum(self._piece(piece) * t**powers / powers))

    def _piece(self, j: int) -> NDArray[np.float64]:
        """Coefficients in rising order of the polynomial between two neighbours."""
        mean, variance, third = self.moments[:, j : j + 2]
        (a0, a1), first = mean, _STEP * (mean + variance)
        second = _STEP**2 * (mean + 3 * variance + third)
        rise = a1 - a0 - first[0] - second[0] / 2
        turn = first[1] - first[0] - second[0]
        bend = second[1] - second[0]
        return np.array(
            [
                a0,
                first[0],
                second[0] / 2,
                10 * rise - 4 * turn + bend / 2,
                -15 * rise + 7 * turn - bend,
                6 * rise - 3 * turn + bend / 2,
            ]
        )
