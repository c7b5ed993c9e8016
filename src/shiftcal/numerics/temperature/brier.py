"""The temperature of least Brier score."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from shiftcal._types import FitStatus, Labels, Logits, Weights
from shiftcal.numerics._block_sums import moderate
from shiftcal.numerics.temperature import range_status
from shiftcal.numerics.temperature.brier_slope import brier_slope

# Neighbours differ by a third in temperature; the score varies slower than that.
_GRID = 33
_CLOSE = 1e-11


class BrierSolution(NamedTuple):
    """Where the search ended.

    Attributes:
        temperature: The temperature, inside the range that was allowed.
        status: Converged, or at which end of the range and why.
        brier: Mean Brier score there, weighted if weights were given.
    """

    temperature: float
    status: FitStatus
    brier: float


def solve_brier_temperature(
    logits: Logits,
    labels: Labels,
    weights: Weights | None = None,
    *,
    t_range: tuple[float, float] = (0.01, 100.0),
) -> BrierSolution:
    """The T that minimises the mean of ``sum over k of (softmax(z / T)_k - [label = k])**2``.

    The score may have several minima in T. The slope's sign on a grid shows where they are; each
    is found to full precision, and the lowest is returned, or an end of the range that is lower.

    Args:
        logits: ``(n, k)``; copied once if they are not in C order.
        labels: ``(n,)``.
        weights: ``(n,)`` of any scale, or ``None`` for ones.
        t_range: Smallest and largest temperature allowed.
    """
    data = (np.ascontiguousarray(logits), labels, moderate(weights))
    # Signs are those of the derivative by -log T = log beta, from the highest temperature down.
    grid = np.linspace(-math.log(t_range[1]), -math.log(t_range[0]), _GRID)
    slopes = np.array([brier_slope(data, math.exp(u)).slope for u in grid])
    steep = np.flatnonzero(slopes)
    if len(steep) == 0:
        return _at_end(data, t_range, upper=True)
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
    best = min(minima, key=lambda u: brier_slope(data, math.exp(u)).score)
    if best in (grid[0], grid[-1]):
        return _at_end(data, t_range, upper=bool(best == grid[0]))
    return BrierSolution(
        math.exp(-best), FitStatus("converged"), brier_slope(data, math.exp(best)).score
    )


def _at_end(
    data: tuple[Logits, Labels, Weights | None], t_range: tuple[float, float], *, upper: bool
) -> BrierSolution:
    temperature = t_range[1] if upper else t_range[0]
    score = brier_slope(data, 1 / temperature).score
    if not upper:
        error_free = range_status.is_error_free(data)
        why = range_status.ERROR_FREE if error_free else range_status.BELOW
        return BrierSolution(temperature, range_status.at_lower_bound(t_range, why), score)
    if range_status.is_constant(data):
        why = range_status.FLAT
    elif range_status.beats_chance(data):
        why = range_status.ABOVE
    else:
        why = range_status.CHANCE
    return BrierSolution(temperature, range_status.at_upper_bound(t_range, why), score)
