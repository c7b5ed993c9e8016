"""Compiled sums over blocks of softmax rows. Importing this file imports numba: only in functions.

A block of rows is transposed first, so that neighbours in memory are the same class of different
rows: every loop then runs over rows, eight at a time where the processor can, however few or many
classes there are. The work is done in the logits' own type, the sums are kept in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from shiftcal.numerics._block_sums import ROWS
from shiftcal.numerics._jit import compiled

# Classes whose sum is kept in the logits' type before it is added to the total: a short sum does
# not lose the many small terms beside the one large one.
CLASSES = 32
# Non-finite logits were refused long before, so the compiler need not think of them. Only the
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
            _power_sums(turned[c : c + CLASSES], top[:n], b, part)
            move_on(part, sums, c == 0)
        if weights.shape[0] > 0:
            for r in range(n):
                w[r] = weights[first + r]
        _weighted(w[:n], sums, weights.shape[0] > 0, out[i])
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
def _power_sums(turned: Any, top: Any, b: Any, part: Any) -> None:
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
def _weighted(w: Any, sums: Any, weighted: Any, out: Any) -> None:
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
_ONE = np.float32(1)
_HALF = np.float32(0.5)
_SHIFTER = np.float32(1.5 * 2**23)
_PLACE = np.int32(23)


def _exp2_single(t: Any) -> Any:
    n = np.floor(t + _HALF)
    f = t - n
    p = ((((_A6 * f + _A5) * f + _A4) * f + _A3) * f + _A2) * f + _A1
    p = np.float32(p * f + _ONE)
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
