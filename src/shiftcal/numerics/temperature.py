"""The temperature of least negative log-likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from shiftcal._types import FitStatus, Labels, Logits, Weights
from shiftcal.numerics import temperature_range
from shiftcal.numerics._block_sums import moderate
from shiftcal.numerics.softmax_moments import Moments, softmax_moments

# The error of Halley's step is cubic: from a step this small on, 1/T is right to 1e-10.
_CLOSE = 3e-4
# A bracket this narrow holds nothing but rounding errors.
_CLOSED = 1e-9
# For a first guess at most every 32nd block of rows is looked at, and at least some 1,000 rows.
_SPARSE = 32
_ENOUGH = 1024


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
    search begins on some of the rows; two or three looks at all of them then decide.

    Args:
        logits: ``(n, k)``, C-contiguous.
        labels: ``(n,)``.
        weights: ``(n,)`` of any scale, or ``None`` for ones.
        t_range: Smallest and largest temperature allowed.
    """
    data = (logits, labels, moderate(weights))
    ends = (1 / t_range[1], 1 / t_range[0])
    beta = min(max(1.0, ends[0]), ends[1])
    every = min(_SPARSE, len(logits) // _ENOUGH)
    if every > 1:
        beta, _ = _search(lambda b: softmax_moments(data, b, every=every), ends, beta)
    beta, here = _search(lambda b: softmax_moments(data, b), ends, beta)
    assert here is not None, "weights are not zero everywhere"
    if here.slope == 0 and here.regret > 0:
        return TemperatureSolution(1 / beta, FitStatus("converged"), here.nll)
    return _at_end(data, t_range, here)


def _search(
    look: Callable[[float], Moments | None], ends: tuple[float, float], start: float
) -> tuple[float, Moments | None]:
    """The inverse temperature at which the slope is zero, and the moments there.

    Halley's steps, kept inside a bracket; where they leave it or do not shrink, the bracket is
    halved. An end of the range is looked at only when a step leads beyond it. If there is no
    zero, that end is returned with its slope; without errors in the set, any point.
    """
    low, high = ends
    tried = set()
    beta, last = start, math.inf
    while True:
        here = look(beta)
        if here is None or here.regret == 0 or _stuck(here, beta, ends):
            return beta, here
        tried.add(beta)
        step = _halley(here)
        wanted = here.beta * (1 + step)
        low, high = (low, here.beta) if here.slope > 0 else (here.beta, high)
        within = ends[0] < wanted < ends[1]
        if (abs(step) <= _CLOSE and within) or high / low - 1 <= _CLOSED:
            return wanted, here._replace(nll=here.nll + step * here.slope / 2, slope=0.0)
        end = ends[here.slope < 0]
        if low < wanted < high and abs(step) <= last / 2:
            beta, last = wanted, abs(step)
        elif not within and end not in tried:
            beta, last = end, math.inf
        else:
            beta, last = math.sqrt(low * high), math.inf


def _stuck(here: Moments, beta: float, ends: tuple[float, float]) -> bool:
    return (beta == ends[0] and here.slope >= 0) or (beta == ends[1] and here.slope <= 0)


def _halley(here: Moments) -> float:
    """The relative step in 1/T to where the slope is zero; infinite if there is no telling."""
    below = 2 * here.curvature**2 - here.slope * here.third
    if below > 0:
        return -2 * here.slope * here.curvature / below
    return math.copysign(math.inf, -here.slope)


def _at_end(
    data: temperature_range.Data, t_range: tuple[float, float], here: Moments
) -> TemperatureSolution:
    """The end of the range that the slope points to, and the reason."""
    low, high = t_range
    if here.regret == 0 and not temperature_range.is_constant(data):
        status = temperature_range.at_lower_bound(t_range, temperature_range.ERROR_FREE)
    elif here.regret == 0:
        status = temperature_range.at_upper_bound(t_range, temperature_range.FLAT)
    elif here.slope < 0:
        status = temperature_range.at_lower_bound(t_range, temperature_range.BELOW)
    elif temperature_range.beats_chance(data):
        status = temperature_range.at_upper_bound(t_range, temperature_range.ABOVE)
    else:
        status = temperature_range.at_upper_bound(t_range, temperature_range.CHANCE)
    temperature = low if status.code == "at-lower-bound" else high
    there = softmax_moments(data, 1 / temperature)
    assert there is not None
    return TemperatureSolution(temperature, status, there.nll)
