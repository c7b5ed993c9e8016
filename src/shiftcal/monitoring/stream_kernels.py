"""Compiled passes of the monitor. Importing this file imports numba: import it in functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from shiftcal.monitoring.windows import BITS, FLOOR, UNIT
from shiftcal.numerics.jit import compiled
from shiftcal.numerics.temperature_kernels import exp2

# --------------------------------------------------------------------------------------
# The end of a block, compiled. Importing this file imports numba: only inside functions.
# --------------------------------------------------------------------------------------

PLAIN = {"error_model": "numpy"}


@compiled(error_model="numpy")
def end_block(ring: Any, features: Any, partial: Any, head: Any, window: Any, means: Any) -> None:
    """Put a block into the ring, and add up the window.

    Args:
        ring: ``(b, c)`` sums of the blocks.
        features: ``(b, 5)`` of them.
        partial: ``(c,)`` sums of the block; zero afterwards.
        head: Its place.
        window: ``(f,)`` weights of the blocks that are there then, by age, for a mean.
        means: ``(c - 1,)`` gets the means over the window, in all columns but the last.
    """
    for c in range(partial.shape[0]):
        ring[head, c] = partial[c]
        partial[c] = 0
    row_of(ring[head], features[head])
    means[:] = 0.0
    for age in range(window.shape[0]):
        place = (head - age) % ring.shape[0]
        for c in range(means.shape[0]):
            means[c] += window[age] * ring[place, c]


@compiled(error_model="numpy")
def largest_ratio(features: Any, head: Any, filled: Any, scales: Any) -> float:
    """The largest ratio of a statistic to its limit, over the scales that are there.

    Args:
        features: ``(b, 5)`` sums of the blocks, a ring.
        head: Place of the newest.
        filled: Blocks in the ring.
        scales: ``(s, b)`` weights by age, which make a mean in standard deviations; ``(s,)`` blocks
            that each scale needs; ``(s, 5)`` the reference in the same unit; ``(5, d)`` directions;
            ``(s, 2)`` squared limits.
    """
    weights, needed, offset, directions, squares = scales
    largest = 0.0
    moved = np.empty(features.shape[1])
    for s in range(weights.shape[0]):
        if filled >= needed[s]:
            for i in range(moved.shape[0]):
                moved[i] = -offset[s, i]
            for age in range(needed[s]):
                place = (head - age) % features.shape[0]
                for i in range(moved.shape[0]):
                    moved[i] += weights[s, age] * features[place, i]
            largest = max(largest, _square(moved, directions, squares[s]))
    return math.sqrt(largest)


@njit(**PLAIN)
def row_of(sums: Any, out: Any) -> None:
    """Sums of the features over the rows of a block, in the order of ``FEATURES``."""
    k = (sums.shape[0] - 4) // 2
    concentration = np.int64(0)
    for c in range(2 + k, 2 + 2 * k):
        concentration += sums[c]
    out[0] = UNIT * sums[0]
    out[1] = UNIT * sums[2 * k + 2]
    out[2] = UNIT * sums[1]
    out[3] = UNIT * concentration
    out[4] = UNIT * sums[2 * k + 3]


@njit(**PLAIN)
def _square(moved: Any, directions: Any, squares: Any) -> Any:
    """The larger of both squared ratios."""
    directed = 0.0
    undirected = 0.0
    for j in range(directions.shape[1]):
        along = 0.0
        for i in range(moved.shape[0]):
            along += moved[i] * directions[i, j]
        if j == 0:
            directed = along * abs(along)
        else:
            undirected += along * along
    return max(directed / squares[0], undirected / squares[1])


# --------------------------------------------------------------------------------------
# One compiled pass over a batch. Importing this file imports numba: only in functions.
#
# Rows are taken in lanes of fixed number and every loop over exponentials runs over all lanes,
# those
# that hold no row as well: a row then has the same bits wherever in a batch it comes, alone or
# among
# many. Sums are whole numbers, so that neither order nor grouping of the rows changes them.
# --------------------------------------------------------------------------------------

LANES = 32
_LOG2E = 1 / math.log(2.0)
_LN2 = math.log(2.0)
_UNIT = 2.0**BITS
# Adding it leaves a whole number in the low bits, rounded to nearest.
_SHIFTER = 1.5 * 2.0**52
_ZERO = np.float64(_SHIFTER).view(np.int64)
_LOWEST = -126.0
FINITE = {"error_model": "numpy", "fastmath": {"contract", "nnan", "ninf", "nsz"}}


@compiled(error_model="numpy")
def is_plain(logits: Any, limit: Any, tolerance: Any) -> bool:
    """Whether logits are finite, within the limit, and no probabilities: nothing to be asked."""
    simplex = True
    for r in range(logits.shape[0]):
        total = 0.0
        least = 0.0
        for c in range(logits.shape[1]):
            z = np.float64(logits[r, c])
            if not abs(z) <= limit:
                return False
            total += z
            least = min(least, z)
        if least < 0 or abs(total - 1) > tolerance:
            simplex = False
    return not simplex


@compiled(error_model="numpy")
def pass_rows(
    logits: Any, temperature: Any, sums: Any, confidence: Any, predicted: Any, probs: Any
) -> None:
    """Calibrate rows, and add what they hold to the sums of a block.

    Args:
        logits: ``(n, k)``.
        temperature: What they are divided by.
        sums: ``(2 k + 4,)`` whole numbers, see ``_columns``; added to.
        confidence: ``(n,)`` gets the largest probability.
        predicted: ``(n,)`` gets the first class that has it.
        probs: ``(n, k)`` gets the probabilities, or ``(0, 0)``.
    """
    n, k = logits.shape
    below = np.zeros((k, LANES))
    powers = np.empty((k, LANES))
    top = np.empty(LANES)
    total = np.empty(LANES)
    weighed = np.empty(LANES)
    which = np.empty(LANES, np.int64)
    for first in range(0, n, LANES):
        m = min(LANES, n - first)
        _turn(logits[first : first + m], below)
        _tops(below, top, which)
        predicted[first : first + m] = which[:m]
        _powers(below, top, _LOG2E, powers, total, weighed)
        _add_classes(powers, total, m, sums)
        _add_rows(k, total, weighed, m, sums)
        if temperature != 1.0:
            _powers(below, top, _LOG2E / temperature, powers, total, weighed)
        for r in range(m):
            confidence[first + r] = 1 / total[r]
        if probs.shape[0] > 0:
            _divide(powers, total, probs[first : first + m])


@njit(**PLAIN)
def _turn(rows: Any, below: Any) -> None:
    """Rows become lanes; what is in the other lanes stays, and is finite."""
    for r in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            below[c, r] = rows[r, c]


@njit(**PLAIN)
def _divide(powers: Any, total: Any, probs: Any) -> None:
    """Probabilities of the rows in the first lanes."""
    for r in range(probs.shape[0]):
        for c in range(probs.shape[1]):
            probs[r, c] = powers[c, r] / total[r]


@njit(**PLAIN)
def _tops(below: Any, top: Any, which: Any) -> None:
    """The largest of each lane and the first class that has it."""
    for r in range(LANES):
        top[r] = below[0, r]
        which[r] = 0
    for c in range(1, below.shape[0]):
        for r in range(LANES):
            more = below[c, r] > top[r]
            top[r] = below[c, r] if more else top[r]
            which[r] = c if more else which[r]


@njit(**FINITE)
def _powers(below: Any, top: Any, b: Any, powers: Any, total: Any, weighed: Any) -> None:
    """``e = 2^t`` with ``t = b (z - max z)``, and the sums of ``e`` and ``t e`` over classes."""
    for r in range(LANES):
        total[r] = 0.0
        weighed[r] = 0.0
    for c in range(below.shape[0]):
        for r in range(LANES):
            t = max((below[c, r] - top[r]) * b, _LOWEST)
            e = exp2(t)
            powers[c, r] = e
            total[r] += e
            weighed[r] += t * e


@njit(**PLAIN)
def _add_classes(powers: Any, total: Any, m: Any, sums: Any) -> None:
    """Add ``p`` and ``p²`` of every class."""
    k = powers.shape[0]
    one = np.empty(LANES)
    for r in range(LANES):
        one[r] = 1 / total[r]
    for c in range(k):
        first = np.int64(0)
        second = np.int64(0)
        for r in range(m):
            p = powers[c, r] * one[r]
            first += _whole(p)
            second += _whole(p * p)
        sums[2 + c] += first
        sums[2 + k + c] += second


@njit(**PLAIN)
def _add_rows(k: Any, total: Any, weighed: Any, m: Any, sums: Any) -> None:
    """Add p_max, entropy, p_max² and the logarithm of what is left of 1."""
    for r in range(m):
        one = 1 / total[r]
        entropy = math.log(total[r]) - _LN2 * (weighed[r] * one)
        rest = max((total[r] - 1) * one, FLOOR)
        sums[0] += _whole(one)
        sums[1] += _whole(max(entropy, 0.0))
        sums[2 + 2 * k] += _whole(one * one)
        sums[3 + 2 * k] += _whole(-math.log(rest))


@njit(**PLAIN)
def _whole(value: Any) -> Any:
    """The nearest whole number of units, of a value from 0 to below 2^11."""
    return np.float64(value * _UNIT + _SHIFTER).view(np.int64) - _ZERO
