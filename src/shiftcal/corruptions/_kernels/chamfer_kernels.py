"""Distances to the nearest edge by a chamfer (Borgefors, 1986). Imports numba.

Steps of 1, 1.4 and 2.1969 (along, across, knight's move) are added one at a time in float32, as in
OpenCV with the mask of 5 x 5 on processors of the x86 family (elsewhere it counts in units of
2**-16, with differences below 0.0005).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.framed_kernels import FRAME, ONE, Z

F = np.float32
_STEP, _DIAGONAL, _KNIGHT = F(1), F(1.4), F(2.1969)
_TWO = Z(2)


@njit
def distances(state: Any, h: Any, w: Any, limit: Any, out: Any) -> None:
    """The distance of every pixel to the nearest with ``state`` 2, at most ``limit``.

    Args:
        state: A framed plane of uint8.
        h: The plane's height.
        w: The plane's width.
        limit: The largest distance.
        out: A framed plane of float32; its frame will be ``limit``.
    """
    far = F(limit)
    for j in range(out.shape[0]):
        out[j] = F(0) if state[j] == 2 else far
    stride = Z(w + 2 * FRAME)
    for y in range(FRAME, FRAME + h):
        _from_row(out, Z(y) * stride + Z(FRAME), Z(0) - stride, w)
        _along_row(out, Z(y) * stride + Z(FRAME), ONE, w)
    for y in range(FRAME + h - 1, FRAME - 1, -1):
        _from_row(out, Z(y) * stride + Z(FRAME), stride, w)
        _along_row(out, Z(y) * stride + Z(FRAME + w - 1), Z(0) - ONE, w)


@njit
def _from_row(out: Any, first: Any, s: Any, w: Any) -> None:
    """Take what the two rows on one side of a row, at ``s`` and ``2 s``, allow."""
    for j in range(w):
        i = Z(j) + first
        one, two = i + s, i + s + s
        knight = min(out[one - _TWO], out[one + _TWO], out[two - ONE], out[two + ONE])
        diagonal = min(out[one - ONE], out[one + ONE])
        best = min(knight + _KNIGHT, diagonal + _DIAGONAL)
        out[i] = min(out[i], best, out[one] + _STEP)


@njit
def _along_row(out: Any, first: Any, way: Any, w: Any) -> None:
    """Go along a row from ``first``; ``way`` is 1 or -1.

    Each pixel waits for the one before it. So the row is gone along in four parts at the same
    time, and what comes over from a part to the next is taken in afterwards, as far as it counts.
    """
    part = w // 4
    jump = Z(part) * way
    a, b, c, d = first, first + jump, first + jump + jump, first + jump + jump + jump
    na, nb, nc, nd = out[a], out[b], out[c], out[d]
    for _ in range(part - 1):
        a, b, c, d = a + way, b + way, c + way, d + way
        na, nb = min(out[a], na + _STEP), min(out[b], nb + _STEP)
        nc, nd = min(out[c], nc + _STEP), min(out[d], nd + _STEP)
        out[a], out[b], out[c], out[d] = na, nb, nc, nd
    for _ in range(w - 4 * part):
        d += way
        nd = min(out[d], nd + _STEP)
        out[d] = nd
    _carry(out, a, way, w - part)
    _carry(out, b, way, w - 2 * part)
    _carry(out, c, way, w - 3 * part)


@njit(inline="always")
def _carry(out: Any, last: Any, way: Any, most: Any) -> None:
    """Go on from a part's last pixel while that makes distances smaller, ``most`` pixels long."""
    i, near = last + way, out[last] + _STEP
    while most > 0 and near < out[i]:
        out[i] = near
        i, near, most = i + way, near + _STEP, most - 1
