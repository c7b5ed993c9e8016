"""One answer, compiled. Importing this file imports numba: only in functions."""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from shiftcal.numerics.jit import compiled

PLAIN = {"error_model": "numpy"}


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
        add_statistics(means[i], edge, s)
    s /= means.shape[0]
    for r in range(2):
        low, high, odds, share = limits[r]
        for half in range(2):
            a, b = polynomial(s, quadratics[r, half])
            out[half] += share * min(max(a, low), high)
            out[2 + half] += share / (1 + math.exp(-min(max(b, -odds), odds)))
        a, b = polynomial(s, quadratics[r, 2])
        out[4] += share / (1 + math.exp(-min(max(a, -50.0), 50.0)))
        out[5] += share * distance(s, clouds[r, 0])
        out[6] += share * distance(s, clouds[r, 1])


@njit(**PLAIN)
def add_statistics(means: Any, edge: Any, out: Any) -> None:
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
def polynomial(s: Any, q: Any) -> Any:
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
def distance(s: Any, cloud: Any) -> Any:
    """Length of the difference from the centre, whitened."""
    total = 0.0
    for column in range(4):
        along = 0.0
        for i in range(4):
            along += (s[i] - cloud[i]) * cloud[4 + 4 * i + column]
        total += along * along
    return math.sqrt(total)
