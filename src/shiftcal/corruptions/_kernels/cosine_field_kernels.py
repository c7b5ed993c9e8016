"""Smooth random fields from few cosines. Importing this file imports numba: only in functions.

Let ``S`` be the smoothing along an axis, ``L`` the part of it that few cosines carry, and ``N``
the noise. Then ``S N S = S N L + L N S - L N L + (S - L) N (S - L)``, where the last term is
nothing to speak of, and the others need only the products of ``N`` with the cosines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.counter_kernels import U, word
from shiftcal.corruptions._kernels.smooth_field_kernels import REFLECT, scratch_size, smooth_rows

F = np.float32
_LOW = U(0xFFFF)
_BLOCK = 8


@njit
def noise_row(low: Any, high: Any, first: Any, step: Any, amplitude: Any, a: Any, b: Any) -> None:
    """Uniform noise from the stream's words ``first``, ``first + step``, ...

    A half word ``k`` gives ``amplitude * ((2 k + 1) / 65536 - 1)``: the low halves go into one
    array, the high ones into the other.
    """
    scale = F(amplitude * F(2.0**-15))
    least = F(amplitude * F(2.0**-16 - 1.0))
    for j in range(low.shape[0]):
        bits = word(U(U(first) + U(U(step) * U(j))), a, b)
        low[j] = F(np.int32(bits & _LOW)) * scale + least
        high[j] = F(np.int32(bits >> U(16))) * scale + least


@njit
def cosine_fields(fields: Any, down: Any, across: Any, amplitude: Any, a: Any, b: Any) -> None:
    """Two smoothed fields of uniform noise; pixel ``p`` takes its noise from the ``p``-th word.

    Args:
        fields: ``(2, h, w)`` float32, to be written.
        down: The columns' weights, cosines and scaled cosines; see ``cosine_basis.Axis``.
        across: The same of the rows.
        amplitude: Of the noise, float32.
        a: Half of the stream's key.
        b: The other half.
    """
    h, w = fields.shape[1:]
    weights_down, cosines_down, scaled_down = down
    weights_across, cosines_across, scaled_across = across
    by_row = _project(cosines_down, w, (w, 1), amplitude, a, b)
    by_column = _project(cosines_across, h, (1, w), amplitude, a, b)
    n_down, n_across = scaled_down.shape[1], scaled_across.shape[1]
    terms = -(-(n_down + n_across) // _BLOCK) * _BLOCK
    rows = np.zeros((terms, w), np.float32)
    factors = np.zeros(terms, np.float32)
    taps = max(weights_down.shape[0], weights_across.shape[0])
    scratch = np.empty(scratch_size(max(n_down, n_across), max(h, w), taps), np.float32)
    for f in range(n_across):
        for j in range(w):
            rows[f, j] = scaled_across[j, f]
    for c in range(2):
        both = _products(by_row[c], cosines_across)
        smooth_rows(by_row[c], weights_across, REFLECT, scratch)
        smooth_rows(by_column[c], weights_down, REFLECT, scratch)
        for e in range(n_down):
            _copy(rows[n_across + e], by_row[c, e])
            for f in range(n_across):
                _add(rows[n_across + e], rows[f], F(-both[e, f]))
        for i in range(h):
            _combine(fields[c, i], rows, by_column[c], scaled_down, i, factors)


@njit
def _combine(out: Any, rows: Any, across: Any, down: Any, i: Any, factors: Any) -> None:
    """Line ``i``: its factors, column ``i`` of the one and row ``i`` of the other, times rows."""
    n = across.shape[0]
    for f in range(n):
        factors[f] = across[f, i]
    for e in range(down.shape[1]):
        factors[n + e] = down[i, e]
    for j in range(out.shape[0]):
        out[j] = F(0.0)
    for t in range(0, factors.shape[0], _BLOCK):
        _add_block(out, rows, t, factors)


@njit
def _project(cosines: Any, length: Any, steps: Any, amplitude: Any, a: Any, b: Any) -> Any:
    """``(2, k, length)``: the sums over lines of noise, each times a value of every cosine.

    Line ``i`` starts at the word ``i * steps[0]`` and goes on in steps of ``steps[1]``.
    """
    lines, k = cosines.shape
    sums = np.zeros((2, k, length), np.float32)
    noise = np.empty((2, _BLOCK, length), np.float32)
    factors = np.empty(_BLOCK, np.float32)
    for start in range(0, lines, _BLOCK):
        for i in range(_BLOCK):
            first = U((start + i) * steps[0])
            noise_row(noise[0, i], noise[1, i], first, steps[1], amplitude, a, b)
        for e in range(k):
            for i in range(_BLOCK):
                factors[i] = cosines[start + i, e]
            _add_block(sums[0, e], noise[0], 0, factors)
            _add_block(sums[1, e], noise[1], 0, factors)
    return sums


@njit
def _products(rows: Any, cosines: Any) -> Any:
    """``rows @ cosines``, added up in the order of the points."""
    n, length = rows.shape
    k = cosines.shape[1]
    result = np.zeros((n, k), np.float32)
    for e in range(n):
        for j in range(length):
            for f in range(k):
                result[e, f] += rows[e, j] * cosines[j, f]
    return result


@njit
def _copy(to: Any, row: Any) -> None:
    for j in range(to.shape[0]):
        to[j] = row[j]


@njit
def _add(out: Any, row: Any, factor: Any) -> None:
    for j in range(out.shape[0]):
        out[j] += row[j] * factor


@njit
def _add_block(out: Any, rows: Any, t: Any, factors: Any) -> None:
    f0, f1, f2, f3 = factors[t], factors[t + 1], factors[t + 2], factors[t + 3]
    f4, f5, f6, f7 = factors[t + 4], factors[t + 5], factors[t + 6], factors[t + 7]
    r0, r1, r2, r3 = rows[t], rows[t + 1], rows[t + 2], rows[t + 3]
    r4, r5, r6, r7 = rows[t + 4], rows[t + 5], rows[t + 6], rows[t + 7]
    for j in range(out.shape[0]):
        out[j] = (
            out[j]
            + ((r0[j] * f0 + r1[j] * f1) + (r2[j] * f2 + r3[j] * f3))
            + ((r4[j] * f4 + r5[j] * f5) + (r6[j] * f6 + r7[j] * f7))
        )
