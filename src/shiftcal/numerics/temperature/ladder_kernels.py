"""Compiled moments at a ladder of temperatures. Importing this file imports numba: in functions.

The ladder has eight inverse temperatures an octave. Those of the lowest octave take an
exponential, those of every other the square of what stands an octave below. What a row adds is
found by itself and added up as whole numbers: it depends neither on the rows around it nor on
their order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from shiftcal.numerics._jit import compiled
from shiftcal.numerics.temperature.ladder import BETAS, FRACTION_BITS, LANES, OCTAVES
from shiftcal.numerics.temperature.softmax_kernels import ANY_ORDER, FINITE, PLAIN, exp2

_LOWEST = BETAS[:LANES] / math.log(2.0)
_BETAS = BETAS.reshape(OCTAVES, LANES)
_SCALE = 2.0**FRACTION_BITS
# Where a class is further below the top than this, in nats, its share is less than sums can hold.
_NOTHING = -44.0
# Rows whose whole numbers surely fit into 64 bits together.
_SAFE_ROWS = 64
_LOW_BITS = np.int64((1 << 32) - 1)
_ONE = OCTAVES // 2  # the octave that begins with an inverse temperature of one


@compiled(error_model="numpy")
def ladder_sums(logits: Any, high: Any, low: Any, log_sums: Any, squares: Any) -> None:
    """Add the moments of rows to sums of whole numbers, and give two numbers for each row.

    With ``x = beta (z - max z)``, a row adds its mean, variance and third central moment under
    its own softmax.

    Args:
        logits: ``(n, k)``.
        high: ``(3, octaves, lanes)`` whole multiples of ``2**32`` to be added to.
        low: ``(3, octaves, lanes)`` what is left of the sums.
        log_sums: ``(n,)`` gets ``log sum exp(z - max z)``.
        squares: ``(n,)`` gets the sum of the squares of the softmax.
    """
    k = logits.shape[1]
    sums = np.empty((4, OCTAVES, LANES))
    total = np.zeros((3, OCTAVES, LANES), np.int64)
    d, e, life = np.empty(k), np.empty(k), np.empty(k, np.int64)
    left = np.empty(OCTAVES + 1, np.int64)
    for i in range(logits.shape[0]):
        ties = _sorted_by_life(logits[i], d, life, left)
        _power_sums(d, e, left, sums)
        for o in range(OCTAVES):
            for lane in range(LANES):
                sums[0, o, lane] += ties
        _add(sums, total)
        s = sums[0, _ONE, 0]
        log_sums[i] = math.log(s)
        squares[i] = sums[0, _ONE + 1, 0] / (s * s)
        if i % _SAFE_ROWS == _SAFE_ROWS - 1 or i == logits.shape[0] - 1:
            _move_on(total, high, low)


@njit(**PLAIN)
def _sorted_by_life(row: Any, d: Any, life: Any, left: Any) -> Any:
    """``z - max z`` of the classes below the top, those that matter in most octaves first.

    Args:
        row: ``(k,)`` logits.
        d: ``(k,)`` gets the differences.
        life: ``(k,)`` room for the number of octaves in which each class matters.
        left: ``(octaves + 1,)`` gets at ``o + 1`` how many classes matter in octave ``o``.

    Returns:
        How many classes are the top.
    """
    top = row[0]
    for c in range(1, row.shape[0]):
        top = max(top, row[c])
    left[:] = 0
    ties = 0.0
    for c in range(row.shape[0]):
        below = np.float64(row[c]) - np.float64(top)
        octaves = 0
        while octaves < OCTAVES and _BETAS[octaves, 0] * below > _NOTHING:
            octaves += 1
        if below == 0.0:
            ties += 1.0
            octaves = -1
        else:
            left[octaves] += 1
        life[c] = octaves
    # From how many live so long to how many live longer: where each group begins.
    longer = 0
    for octaves in range(OCTAVES, -1, -1):
        count = left[octaves]
        left[octaves] = longer
        longer += count
    for c in range(row.shape[0]):
        if life[c] >= 0:
            d[left[life[c]]] = np.float64(row[c]) - np.float64(top)
            left[life[c]] += 1
    # A group ends where the next begins, so that now left[o + 1] of them matter in octave o.
    return ties


@njit(**PLAIN)
def _power_sums(d: Any, e: Any, left: Any, sums: Any) -> None:
    """Sums over classes of ``exp(beta d) d**j`` for j from 0 to 3."""
    sums[:] = 0.0
    for lane in range(LANES):
        _exponentials(d[: left[1]], _LOWEST[lane], e)
        for o in range(OCTAVES):
            n = left[o + 1]
            if n == 0:
                break
            s0, s1, s2, s3 = _step(d[:n], e[:n])
            sums[0, o, lane] = s0
            sums[1, o, lane] = s1
            sums[2, o, lane] = s2
            sums[3, o, lane] = s3


@njit(**FINITE)
def _exponentials(d: Any, b: Any, e: Any) -> None:
    for c in range(d.shape[0]):
        e[c] = exp2(d[c] * b)


@njit(**ANY_ORDER)
def _step(d: Any, e: Any) -> Any:
    """The four sums, after which every power is replaced by its square."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for c in range(d.shape[0]):
        v = e[c]
        e[c] = v * v
        s0 += v
        v *= d[c]
        s1 += v
        v *= d[c]
        s2 += v
        s3 += v * d[c]
    return s0, s1, s2, s3


@njit(**PLAIN)
def _add(sums: Any, total: Any) -> None:
    """Add a row's central moments, in whole numbers of the unit."""
    for o in range(OCTAVES):
        for lane in range(LANES):
            b = _BETAS[o, lane]
            one = b / sums[0, o, lane]
            m1 = one * sums[1, o, lane]
            m2 = b * one * sums[2, o, lane]
            m3 = b * b * one * sums[3, o, lane]
            total[0, o, lane] += np.int64(np.rint(_SCALE * m1))
            total[1, o, lane] += np.int64(np.rint(_SCALE * (m2 - m1 * m1)))
            total[2, o, lane] += np.int64(np.rint(_SCALE * (m3 - m1 * (3 * m2 - 2 * m1 * m1))))


@njit(**PLAIN)
def _move_on(total: Any, high: Any, low: Any) -> None:
    """Add ``total`` to the two halves of the sums, and clear it."""
    for j in range(3):
        for o in range(OCTAVES):
            for lane in range(LANES):
                high[j, o, lane] += total[j, o, lane] >> 32
                low[j, o, lane] += total[j, o, lane] & _LOW_BITS
                total[j, o, lane] = 0
