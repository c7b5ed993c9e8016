"""ECE of many redraws of the same rows, which are sorted once. Imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.numerics._jit import compiled

_PLAIN = {"error_model": "numpy"}


@compiled(**_PLAIN)
def redrawn_errors(gap: Any, order: Any, last: Any, cuts: Any, times: Any, errors: Any) -> None:
    """Write the ECE of every redraw to ``errors``.

    Args:
        gap: ``(n,)`` confidence less correctness of every row.
        order: ``(n,)`` the rows from the least confident to the most.
        last: ``(n,)`` whether the row of that rank is the last of its confidence.
        cuts: ``(m + 1,)`` ranks between bins, from 0 to n.
        times: ``(b, n)`` how often each row comes in a redraw, n times in all.
        errors: ``(b,)``.
    """
    n = order.shape[0]
    gaps, counts = np.empty(n), np.empty(n)
    for b in range(times.shape[0]):
        for i in range(n):
            row = order[i]
            counts[i] = times[b, row]
            gaps[i] = counts[i] * gap[row]
        errors[b] = _binned(gaps, counts, last, cuts)


@compiled(**_PLAIN)
def calibrated_errors(
    confidence: Any, order: Any, last: Any, cuts: Any, uniform: Any, errors: Any
) -> None:
    """Write the ECE of the rows with truths drawn as the confidences say to ``errors``.

    Args:
        confidence: ``(n,)``.
        order: As above, and so ``last`` and ``cuts``.
        last: See there.
        cuts: See there.
        uniform: ``(b, n)`` random numbers; a row is right where its number is below its confidence.
        errors: ``(b,)``.
    """
    n = order.shape[0]
    gaps, counts = np.empty(n), np.ones(n)
    for b in range(uniform.shape[0]):
        for i in range(n):
            row = order[i]
            gaps[i] = confidence[row] - (1.0 if uniform[b, row] < confidence[row] else 0.0)
        errors[b] = _binned(gaps, counts, last, cuts)


@njit(**_PLAIN)
def _binned(gaps: Any, counts: Any, last: Any, cuts: Any) -> Any:
    """``sum_b |sum of gaps in bin b| / n``; equal confidences that are cut are spread evenly."""
    n = gaps.shape[0]
    total, within, rank = 0.0, 0.0, 0.0
    group, count, cut = 0.0, 0.0, 1
    for i in range(n):
        group += gaps[i]
        count += counts[i]
        if not last[i]:
            continue
        left = count
        while cut < cuts.shape[0] and rank + left >= cuts[cut] and left > 0:
            taken = cuts[cut] - rank
            within += group * taken / count
            total += abs(within)
            within = 0.0
            rank += taken
            left -= taken
            cut += 1
        if left > 0:
            within += group * left / count
            rank += left
        group, count = 0.0, 0.0
    return total / n
