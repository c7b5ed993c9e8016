"""Edges of a plane after Canny (1986). Imports numba: import it in functions.

All arithmetic is in whole numbers, as in OpenCV with an aperture of 3 and the L1 gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.framed_kernels import ONE, Z, clear_frame, mirror_frame, span

WEAK, STRONG = 1, 2
H, W = np.int16, np.int32
_TAN_22_5 = W(13573)  # tan(22.5 degrees) in units of 2**-15; tan(67.5 degrees) is 2 more


@njit
def edges(plane: Any, h: Any, w: Any, low: Any, high: Any, state: Any, work: Any) -> None:
    """Mark the edges of a plane: pixels of ``state`` that end as ``STRONG``.

    Sobel gradients with the border repeated; magnitude ``|gx| + |gy|``; thinned to local maxima
    across the edge; above ``low`` and connected with one above ``high``, also over corners.

    Args:
        plane: A framed plane of int16 in 0 .. 255; its frame is overwritten, and 0 in the end.
        h: The plane's height.
        w: The plane's width.
        low: A gradient must be above it.
        high: One of each connected edge must be above it.
        state: A framed plane of uint8; its frame will be 0.
        work: ``(3, framed_size)`` int16; overwritten.
    """
    gx, gy, size = work[0], work[1], work[2]
    mirror_frame(plane, h, w, np.int64(0))
    _gradients(plane, h, w, gx, gy, size)
    clear_frame(plane, h, w)
    clear_frame(size, h, w)
    _thin(work, h, w, low, high, state)
    clear_frame(state, h, w)
    _connect(state, h, w)


@njit(inline="always")
def _gradients(plane: Any, h: Any, w: Any, gx: Any, gy: Any, size: Any) -> None:
    first, count, s = span(h, w)
    for j in range(count):
        i = Z(j) + first
        a, b, c = plane[i - s - ONE], plane[i - s], plane[i - s + ONE]
        d, f = plane[i - ONE], plane[i + ONE]
        p, q, r = plane[i + s - ONE], plane[i + s], plane[i + s + ONE]
        x = H(H(H(c - a) + H(r - p)) + H(H(f - d) + H(f - d)))
        y = H(H(H(p - a) + H(r - c)) + H(H(q - b) + H(q - b)))
        gx[i], gy[i] = x, y
        size[i] = H(H(max(x, H(-x))) + H(max(y, H(-y))))


@njit(inline="always")
def _thin(work: Any, h: Any, w: Any, low: Any, high: Any, state: Any) -> None:
    gx, gy, size = work[0], work[1], work[2]
    first, count, s = span(h, w)
    least, strong = H(low), H(high)
    for j in range(count):
        i = Z(j) + first
        x, y, m = gx[i], gy[i], size[i]
        left, right, up, down = size[i - ONE], size[i + ONE], size[i - s], size[i + s]
        up_left, up_right = size[i - s - ONE], size[i - s + ONE]
        down_left, down_right = size[i + s - ONE], size[i + s + ONE]
        across = W(W(max(x, H(-x))) * _TAN_22_5)
        along = W(W(max(y, H(-y))) << W(15))
        flat = along < across
        steep = along > W(across + W(W(max(x, H(-x))) << W(16)))
        falling = H(x ^ y) < 0
        before = left if flat else (up if steep else (up_right if falling else up_left))
        after = right if flat else (down if steep else (down_left if falling else down_right))
        # Of two equal neighbours the later one is the edge, but not on a diagonal.
        beats = (m > before) & ((m > after) | ((m == after) & (flat | steep)))
        state[i] = np.uint8(beats & (m > least)) + np.uint8(beats & (m > least) & (m > strong))


@njit
def _connect(state: Any, h: Any, w: Any) -> None:
    """Make every weak pixel strong that a chain of weak ones joins to a strong one."""
    first, count, s = span(h, w)
    weak = 0
    for j in range(count):
        weak += state[Z(j) + first] == WEAK
    if weak == 0:
        return
    none = Z(0)
    around = (none - s - ONE, none - s, none - s + ONE, none - ONE, ONE, s - ONE, s, s + ONE)
    found, waiting = np.empty(weak + 1, np.uint64), np.empty(weak, np.uint64)
    n = none
    for j in range(count):
        # Written at every pixel and kept at weak ones: quicker than to ask.
        found[n] = Z(j) + first
        n += Z(state[Z(j) + first] == WEAK)
    for i in found[:weak]:
        near = False
        for k in around:
            near |= state[i + k] == STRONG
        if near and state[i] == WEAK:
            state[i] = STRONG
            _spread(state, i, around, waiting)


@njit
def _spread(state: Any, start: Any, around: Any, waiting: Any) -> None:
    """Make the weak pixels around a strong one strong, and those around them, and so on."""
    n, at = 0, start
    while True:
        for k in around:
            if state[at + k] == WEAK:
                state[at + k] = STRONG
                waiting[n] = at + k
                n += 1
        if n == 0:
            return
        n -= 1
        at = waiting[n]
