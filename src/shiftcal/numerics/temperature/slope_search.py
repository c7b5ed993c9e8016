"""The point at which an increasing slope is zero, by few and expensive looks at it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from shiftcal.numerics.temperature.softmax_moments import Moments

# The error of Halley's step is cubic: from a step this small on, beta is right to 1e-10.
_CLOSE = 3e-4
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
        if (abs(step) <= _CLOSE and within) or high / low - 1 <= _CLOSED:
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
