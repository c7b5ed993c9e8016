"""Compiled sums of the Brier score. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.numerics._block_sums import ROWS
from shiftcal.numerics._jit import compiled
from shiftcal.numerics.temperature.softmax_kernels import (
    ANY_ORDER,
    CLASSES,
    FINITE,
    exp2,
    move_on,
    tops,
    transpose,
)


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
