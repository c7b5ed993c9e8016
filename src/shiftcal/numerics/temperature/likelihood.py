"""The temperature of least negative log-likelihood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shiftcal._types import FitStatus, Labels, Logits, Weights
from shiftcal.numerics._block_sums import moderate
from shiftcal.numerics.temperature import range_status
from shiftcal.numerics.temperature.slope_search import find_zero, step_to_zero
from shiftcal.numerics.temperature.softmax_moments import Moments, softmax_moments

# For a first guess at most every 32nd block of rows is looked at, and some 6,000 rows at least:
# with them the guess is good to one per cent.
_SPARSE = 32
_ENOUGH = 6144
# By how much some rows may correct a step that was found with all of them; a fraction of that is
# then left as the error. In double precision all rows are looked at once more instead.
_CORRECTION = {"float32": 2e-6, "float64": 1e-10}


class TemperatureSolution(NamedTuple):
    """Where the search ended.

    Attributes:
        temperature: The temperature, inside the range that was allowed.
        status: Converged, or at which end of the range and why.
        nll: Mean negative log-likelihood there, weighted if weights were given.
    """

    temperature: float
    status: FitStatus
    nll: float


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
    data = (np.ascontiguousarray(logits), labels, moderate(weights))
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
    return _at_end(data, t_range, found.here)


def _one_look(data: range_status.Data, some: Moments, *, every: int) -> tuple[float, float | None]:
    """The inverse temperature after one look at all rows; the NLL too if it needs no second.

    All rows tell the slope and its first two derivatives at one point. How the slope goes on
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
    return here.nll + r * (here.slope + r * (here.curvature / 2 + r * here.third / 6))


def _at_end(
    data: range_status.Data, t_range: tuple[float, float], here: Moments
) -> TemperatureSolution:
    """The end of the range that the slope points to, and the reason."""
    low, high = t_range
    if here.regret == 0 and not range_status.is_constant(data):
        status = range_status.at_lower_bound(t_range, range_status.ERROR_FREE)
    elif here.regret == 0:
        status = range_status.at_upper_bound(t_range, range_status.FLAT)
    elif here.slope <= 0:
        status = range_status.at_lower_bound(t_range, range_status.BELOW)
    elif range_status.beats_chance(data):
        status = range_status.at_upper_bound(t_range, range_status.ABOVE)
    else:
        status = range_status.at_upper_bound(t_range, range_status.CHANCE)
    temperature = low if status.code == "at-lower-bound" else high
    there = softmax_moments(data, 1 / temperature)
    assert there is not None
    return TemperatureSolution(temperature, status, there.nll)
