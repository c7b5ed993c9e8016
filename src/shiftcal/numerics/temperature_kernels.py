"""Compiled sums over rows of logits. Importing this file imports numba: import it in functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from shiftcal.numerics.jit import ROWS, compiled
from shiftcal.numerics.temperature import BETAS, FRACTION_BITS, LANES, OCTAVES

# --------------------------------------------------------------------------------------
# Compiled sums over blocks of softmax rows. Importing this file imports numba: only in functions.
#
# A block of rows is transposed first, so that neighbours in memory are the same class of different
# rows: every loop then runs over rows, eight at a time where the processor can, however few or many
# classes there are. The work is done in the logits' own type, the sums are kept in float64.
# --------------------------------------------------------------------------------------

# Classes whose sum is kept in the logits' type before it is added to the total: a short sum does
# not lose the many small terms next to the one large one.
CLASSES = 32
# Non-finite logits were rejected before, so the compiler need not think of them. Only the
# sum over rows may be reordered; np.maximum is vectorised only without any such promise.
PLAIN = {"error_model": "numpy"}
FINITE = {"error_model": "numpy", "fastmath": {"contract", "nnan", "ninf", "nsz"}}
ANY_ORDER = {"error_model": "numpy", "fastmath": True}


@compiled(error_model="numpy")
def moments(logits: Any, labels: Any, weights: Any, b: Any, blocks: Any, out: Any) -> None:
    """Sums over the rows of each block, with ``t = b * (z - max z)`` and ``e = 2**t``.

    Args:
        logits: ``(n, k)``.
        labels: ``(n,)``.
        weights: ``(n,)``, or ``(0,)`` for ones.
        b: Inverse temperature times log2(e), in the logits' type.
        blocks: ``(m,)`` which blocks of ``ROWS`` rows.
        out: ``(m, 6)`` gets the weighted sums of log sum e, of the mean, the variance and the
            third central moment of t under e, of ``max z - z[label]``, and of ones.
    """
    k = logits.shape[1]
    turned = np.empty((k, ROWS), logits.dtype)
    top = np.empty(ROWS, logits.dtype)
    part = np.zeros((4, ROWS), logits.dtype)
    sums = np.empty((4, ROWS))
    w = np.ones(ROWS)
    for i in range(blocks.shape[0]):
        first = blocks[i] * ROWS
        rows = logits[first : first + ROWS]
        n = rows.shape[0]
        transpose(rows, turned)
        tops(turned, top[:n])
        for c in range(0, k, CLASSES):
            _moment_sums(turned[c : c + CLASSES], top[:n], b, part)
            move_on(part, sums, c == 0)
        if weights.shape[0] > 0:
            for r in range(n):
                w[r] = weights[first + r]
        _weighted_moments(w[:n], sums, weights.shape[0] > 0, out[i])
        _regret(rows, labels[first : first + n], top, w, out[i])


@njit(**FINITE)
def transpose(rows: Any, turned: Any) -> None:
    """Rows become columns."""
    # Eight rows at a time: a whole column of a block would hit the same lines of the cache.
    n, k = rows.shape
    for r in range(0, n - 7, 8):
        for c in range(k):
            for i in range(8):
                turned[c, r + i] = rows[r + i, c]
    for r in range(n - n % 8, n):
        for c in range(k):
            turned[c, r] = rows[r, c]


@njit(**PLAIN)
def tops(turned: Any, top: Any) -> None:
    """The largest of each column."""
    for r in range(top.shape[0]):
        top[r] = turned[0, r]
    for c in range(1, turned.shape[0]):
        for r in range(top.shape[0]):
            top[r] = np.maximum(top[r], turned[c, r])


@njit(**PLAIN)
def move_on(part: Any, sums: Any, is_first: Any) -> None:
    """Add ``part`` to ``sums``, which starts at zero, and clear it."""
    for j in range(part.shape[0]):
        for r in range(part.shape[1]):
            sums[j, r] = part[j, r] if is_first else sums[j, r] + part[j, r]
            part[j, r] = 0


@njit(**FINITE)
def _moment_sums(turned: Any, top: Any, b: Any, part: Any) -> None:
    """Add the sums over classes of ``e``, ``t e``, ``t**2 e`` and ``t**3 e`` for every row."""
    lowest = turned.dtype.type(-126)
    for c in range(turned.shape[0]):
        for r in range(top.shape[0]):
            t = max((turned[c, r] - top[r]) * b, lowest)
            e = exp2(t)
            te = t * e
            tte = t * te
            part[0, r] += e
            part[1, r] += te
            part[2, r] += tte
            part[3, r] += t * tte


@njit(**ANY_ORDER)
def _weighted_moments(w: Any, sums: Any, weighted: Any, out: Any) -> None:
    g1 = 0.0
    g2 = 0.0
    g3 = 0.0
    total = 0.0
    for r in range(w.shape[0]):
        one = 1.0 / sums[0, r]
        m1 = sums[1, r] * one
        m2 = sums[2, r] * one
        m3 = sums[3, r] * one
        g1 += w[r] * m1
        g2 += w[r] * (m2 - m1 * m1)
        g3 += w[r] * (m3 - m1 * (3 * m2 - 2 * m1 * m1))
        total += w[r]
    out[1] = g1
    out[2] = g2
    out[3] = g3
    out[5] = total
    out[0] = 0.0
    if weighted:
        for r in range(w.shape[0]):
            out[0] += w[r] * math.log(sums[0, r])
    else:
        # One logarithm for sixteen rows: sums lie in [1, k], so the product cannot overflow.
        for start in range(0, w.shape[0], 16):
            product = 1.0
            for r in range(start, min(start + 16, w.shape[0])):
                product *= sums[0, r]
            out[0] += math.log(product)


@njit(**PLAIN)
def _regret(rows: Any, labels: Any, top: Any, w: Any, out: Any) -> None:
    total = 0.0
    for r in range(rows.shape[0]):
        total += w[r] * (np.float64(top[r]) - np.float64(rows[r, labels[r]]))
    out[4] = total


def exp2(t: Any) -> Any:
    """``2**t`` for ``-126 <= t <= 0``: a polynomial for the fraction, the exponent by its bits.

    Exact at zero, where every row has its maximum, and elsewhere right to the last digit or two.
    The library's function is a call for every value, which takes several times as long.
    """
    raise NotImplementedError


# Coefficients of least relative error for 2**f - 1 on [-1/2, 1/2]: 3e-9, in double 3e-16. Adding
# 1.5 * 2**23 (2**52 in double) to a whole number puts it into the low bits, whence it moves to
# the exponent's place.
_A1, _A2, _A3, _A4, _A5, _A6 = np.array(
    [0.6931472149680279, 0.24022652782887738, 0.05550310551013797,
     0.009617692972993062, 0.0013406643902351759, 0.0001559467816132662], np.float32
)  # fmt: skip
_SINGLE_ONE = np.float32(1)
_HALF = np.float32(0.5)
_SHIFTER = np.float32(1.5 * 2**23)
_PLACE = np.int32(23)


def _exp2_single(t: Any) -> Any:
    n = np.floor(t + _HALF)
    f = t - n
    p = ((((_A6 * f + _A5) * f + _A4) * f + _A3) * f + _A2) * f + _A1
    p = np.float32(p * f + _SINGLE_ONE)
    exponent = np.int32(np.float32(n + _SHIFTER).view(np.int32) << _PLACE)
    return np.int32(p.view(np.int32) + exponent).view(np.float32)


def _exp2_double(t: Any) -> Any:
    n = np.floor(t + 0.5)
    f = t - n
    p = 7.111758687557852e-09 * f + 1.0210506458816145e-07
    p = (p * f + 1.321523563477604e-06) * f + 1.525264774769592e-05
    p = (p * f + 0.00015403530800818256) * f + 0.001333355824648072
    p = (p * f + 0.009618129107380715) * f + 0.05550410866434658
    p = (p * f + 0.24022650695910472) * f + 0.6931471805599516
    p = np.float64(p * f + 1.0)
    exponent = np.int64(np.float64(n + 1.5 * 2**52).view(np.int64) << 52)
    return np.int64(p.view(np.int64) + exponent).view(np.float64)


@overload(exp2, jit_options=FINITE)
def _exp2_by_type(t: Any) -> Any:
    return _exp2_single if t == types.float32 else _exp2_double


# --------------------------------------------------------------------------------------
# Compiled sums of the Brier score. Importing this file imports numba: only in functions.
# --------------------------------------------------------------------------------------


@compiled(error_model="numpy")
def brier(logits: Any, labels: Any, weights: Any, b: Any, blocks: Any, out: Any) -> None:
    """Sums over the rows of each block, with ``t = b * (z - max z)`` and ``p ~ 2**t``.

    Args:
        logits: ``(n, k)``.
        labels: ``(n,)``.
        weights: ``(n,)``, or ``(0,)`` for ones.
        b: Inverse temperature times log2(e), in the logits' type.
        blocks: ``(m,)`` which blocks of ``ROWS`` rows.
        out: ``(m, 3)`` gets the weighted sums of the score, of half its derivative by the
            logarithm of b divided by ln 2, and of ones.
    """
    k = logits.shape[1]
    turned = np.empty((k, ROWS), logits.dtype)
    top = np.empty(ROWS, logits.dtype)
    part = np.zeros((4, ROWS), logits.dtype)
    sums = np.empty((4, ROWS))
    at_label = np.empty(ROWS, logits.dtype)
    w = np.ones(ROWS)
    for i in range(blocks.shape[0]):
        first = blocks[i] * ROWS
        rows = logits[first : first + ROWS]
        n = rows.shape[0]
        transpose(rows, turned)
        tops(turned, top[:n])
        for c in range(0, k, CLASSES):
            _power_sums(turned[c : c + CLASSES], top[:n], b, part)
            move_on(part, sums, c == 0)
        for r in range(n):
            at_label[r] = (rows[r, labels[first + r]] - top[r]) * b
            if weights.shape[0] > 0:
                w[r] = weights[first + r]
        _weighted(w[:n], sums, at_label, out[i])


@njit(**FINITE)
def _power_sums(turned: Any, top: Any, b: Any, part: Any) -> None:
    """Add the sums over classes of ``e``, ``t e``, ``e**2`` and ``t e**2`` for every row."""
    lowest = turned.dtype.type(-126)
    for c in range(turned.shape[0]):
        for r in range(top.shape[0]):
            t = max((turned[c, r] - top[r]) * b, lowest)
            e = exp2(t)
            te = t * e
            part[0, r] += e
            part[1, r] += te
            part[2, r] += e * e
            part[3, r] += te * e


@njit(**ANY_ORDER)
def _weighted(w: Any, sums: Any, at_label: Any, out: Any) -> None:
    lowest = at_label.dtype.type(-126)
    score = 0.0
    slope = 0.0
    total = 0.0
    for r in range(w.shape[0]):
        one = 1.0 / sums[0, r]
        mean = sums[1, r] * one
        t = max(at_label[r], lowest)
        p = exp2(t) * one
        squares = sums[2, r] * one * one
        score += w[r] * (squares - 2 * p + 1)
        slope += w[r] * (sums[3, r] * one * one - mean * squares - p * (t - mean))
        total += w[r]
    out[0] = score
    out[1] = slope
    out[2] = total


# --------------------------------------------------------------------------------------
# Compiled moments at a ladder of temperatures. Importing this file imports numba: in functions.
#
# The ladder has eight inverse temperatures an octave. Those of the lowest octave take an
# exponential, those of every other the square of what stands an octave below. What a row adds is
# found by itself and added up as whole numbers: it depends neither on the rows around it nor on
# their order.
# --------------------------------------------------------------------------------------

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
        _ladder_powers(d, e, left, sums)
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
def _ladder_powers(d: Any, e: Any, left: Any, sums: Any) -> None:
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
