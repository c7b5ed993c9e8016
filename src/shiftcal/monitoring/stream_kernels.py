"""One compiled pass over a batch. Importing this file imports numba: import it in functions.

Rows are taken in a fixed number of lanes, and every loop over exponentials runs over all lanes,
empty ones included: a row then has the same bits wherever it stands in a batch. Sums are whole
numbers, so neither the order nor the grouping of the rows changes them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from shiftcal.monitoring.detector import FLOOR
from shiftcal.numerics.jit import compiled
from shiftcal.numerics.temperature_kernels import exp2

LANES = 32
_LOG2E = 1 / math.log(2.0)
_LN2 = math.log(2.0)
# Sums are in units of 2**-40.
_UNIT = 2.0**40
# Adding it leaves a whole number in the low bits, rounded to nearest.
_SHIFTER = 1.5 * 2.0**52
_ZERO = np.float64(_SHIFTER).view(np.int64)
_LOWEST = -126.0
PLAIN = {"error_model": "numpy"}
FINITE = {"error_model": "numpy", "fastmath": {"contract", "nnan", "ninf", "nsz"}}


@compiled(error_model="numpy")
def pass_rows(
    logits: Any, temperature: Any, sums: Any, confidence: Any, predicted: Any, probs: Any
) -> None:
    """Calibrate rows, and add them to the sums of a block.

    Args:
        logits: ``(n, k)``.
        temperature: What they are divided by.
        sums: ``(2 k + 4,)`` whole numbers, see ``monitor.UNIT``; added to.
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


@compiled(error_model="numpy")
def largest_ratio(
    blocks: Any, weights: Any, needed: Any, offset: Any, directions: Any, squares: Any
) -> float:
    """The largest ratio of a statistic to its limit, over the scales that are there.

    Args:
        blocks: ``(f, 2 k + 4)`` sums of the blocks, the newest first.
        weights: ``(s, b)`` by age, which make a mean in standard deviations.
        needed: ``(s,)`` blocks that each scale needs.
        offset: ``(s, 5)`` the reference in the same unit.
        directions: ``(5, d)``.
        squares: ``(s, 2)`` squared limits.
    """
    features = np.empty((blocks.shape[0], 5))
    for age in range(blocks.shape[0]):
        _features(blocks[age], features[age])
    largest = 0.0
    moved = np.empty(5)
    for s in range(weights.shape[0]):
        if blocks.shape[0] >= needed[s]:
            for i in range(5):
                moved[i] = -offset[s, i]
            for age in range(needed[s]):
                for i in range(5):
                    moved[i] += weights[s, age] * features[age, i]
            largest = max(largest, _square(moved, directions, squares[s]))
    return math.sqrt(largest)


@njit(**PLAIN)
def _features(sums: Any, out: Any) -> None:
    """Sums of the five features over the rows of a block."""
    k = (sums.shape[0] - 4) // 2
    concentration = np.int64(0)
    for c in range(2 + k, 2 + 2 * k):
        concentration += sums[c]
    out[0] = sums[0] / _UNIT
    out[1] = sums[2 * k + 2] / _UNIT
    out[2] = sums[1] / _UNIT
    out[3] = concentration / _UNIT
    out[4] = sums[2 * k + 3] / _UNIT


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


@compiled(error_model="numpy")
def answer(means: Any, edge: Any, quadratics: Any, clouds: Any, limits: Any, out: Any) -> None:
    """The fields of an answer, from the means of the moments of a sample's rows.

    Args:
        means: ``(m, 2 + 2 k)``; of several samples the statistics are averaged.
        edge: How far mean p_max is kept from 0 and 1.
        quadratics: ``(2, 3, 38)`` for the coarser and the finer response and for same, moved and
            judge: centre (4), scale (4), coefficients of both answers (15 + 15).
        clouds: ``(2, 2, 20)`` for everywhere and clean: centre (4), whitening (16) by rows.
        limits: ``(2, 4)``: low, high, the largest log-odds, the share of the response.
        out: ``(11,)`` gets the seven fields, the last not divided by the distance that half keep
            to, then the four statistics.
    """
    out[:] = 0.0
    s = out[7:11]
    for i in range(means.shape[0]):
        _add_statistics(means[i], edge, s)
    s /= means.shape[0]
    for r in range(2):
        low, high, odds, share = limits[r]
        for half in range(2):
            a, b = _polynomial(s, quadratics[r, half])
            out[half] += share * min(max(a, low), high)
            out[2 + half] += share / (1 + math.exp(-min(max(b, -odds), odds)))
        a, b = _polynomial(s, quadratics[r, 2])
        out[4] += share / (1 + math.exp(-min(max(a, -50.0), 50.0)))
        out[5] += share * _distance(s, clouds[r, 0])
        out[6] += share * _distance(s, clouds[r, 1])


@njit(**PLAIN)
def _add_statistics(means: Any, edge: Any, out: Any) -> None:
    """Add what :func:`output_statistics` gives for one sample."""
    k = (means.shape[0] - 2) // 2
    top = min(max(means[0], edge), 1 - edge)
    spread = 0.0
    sharp = 0.0
    for c in range(k):
        first = means[2 + c]
        if first > 0:
            spread -= first * math.log(first)
            sharp += means[2 + k + c] / first
    out[0] += math.log(top) - math.log1p(-top)
    out[1] += means[1] / math.log(k)
    out[2] += spread / math.log(k)
    out[3] += sharp / k


@njit(**PLAIN)
def _polynomial(s: Any, q: Any) -> Any:
    """Both answers of a quadratic of four statistics, which are standardised first."""
    a, b = q[8], q[23]
    term = 1
    for i in range(4):
        x = (s[i] - q[i]) / q[4 + i]
        a += x * q[8 + term]
        b += x * q[23 + term]
        term += 1
    for i in range(4):
        x = (s[i] - q[i]) / q[4 + i]
        for j in range(i, 4):
            xy = x * ((s[j] - q[j]) / q[4 + j])
            a += xy * q[8 + term]
            b += xy * q[23 + term]
            term += 1
    return a, b


@njit(**PLAIN)
def _distance(s: Any, cloud: Any) -> Any:
    """Length of the difference from the centre, whitened."""
    total = 0.0
    for column in range(4):
        along = 0.0
        for i in range(4):
            along += (s[i] - cloud[i]) * cloud[4 + 4 * i + column]
        total += along * along
    return math.sqrt(total)
