"""The relief of water: distances made into light and shade. Imports numba: import it in functions.

Each step gives what OpenCV's function of that name gives, borders mirrored without repeating the
last pixel (its default).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.framed_kernels import FRAME, ONE, Z, mirror_frame, span

H, W, F = np.int16, np.int32, np.float32
LEVELS, LAST = 256, 255
_UNITS = F(1 << 23)  # distances are 0 or from 1 to 20, so multiples of 2**-23
_NINTH = (1.0 / 9.0) / (1 << 23)


@njit
def box_distances(distances: Any, h: Any, w: Any, sums: Any, out: Any) -> None:
    """The mean of each 3 x 3 neighbourhood, cut to a whole number.

    The nine are added exactly and their ninth is rounded to float32 before it is cut, so that a
    mean that rounding leaves just below a whole number is that number.

    Args:
        distances: A framed plane of float32, 0 or from 1 to 20; its frame is overwritten.
        h: The plane's height.
        w: The plane's width.
        sums: A framed plane of int32; overwritten.
        out: A framed plane of int16.
    """
    mirror_frame(distances, h, w, np.int64(1))
    first, count, s = span(h, w)
    for j in range(count + 2 * W(s)):
        i = Z(j) + first - s
        left, here, right = distances[i - ONE], distances[i], distances[i + ONE]
        sums[i] = W(W(W(left * _UNITS) + W(here * _UNITS)) + W(right * _UNITS))
    for j in range(count):
        i = Z(j) + first
        total = W(W(sums[i - s] + sums[i]) + sums[i + s])
        out[i] = H(W(F(np.float64(total) * _NINTH)))


@njit
def equalize(plane: Any, h: Any, w: Any, counts: Any) -> None:
    """Spread the levels so that each is as bright as the share of pixels up to it.

    The darkest level that occurs becomes 0, the brightest 255; a flat plane stays as it is.

    Args:
        plane: A framed plane of int16 in 0 .. 255, changed in place.
        h: The plane's height.
        w: The plane's width.
        counts: ``(4, 256)`` int32; overwritten.
    """
    _count_levels(plane, h, w, counts)
    table = counts[0]
    darkest = 0
    while table[darkest] == 0:
        darkest += 1
    others = h * w - table[darkest]
    if others == 0:
        return
    scale = F(255) / F(others)
    table[darkest] = 0
    total = 0
    for level in range(LEVELS):
        total += table[level]
        table[level] = W(np.rint(F(total) * scale))
    first, count, _ = span(h, w)
    for j in range(count):
        i = Z(j) + first
        plane[i] = H(table[plane[i] & LAST])


@njit(inline="always")
def _count_levels(plane: Any, h: Any, w: Any, counts: Any) -> None:
    """Tally into the first row. Four tallies are kept: equal neighbours do not wait in turn."""
    one, two, three, four = counts[0], counts[1], counts[2], counts[3]
    for level in range(LEVELS):
        one[level] = two[level] = three[level] = four[level] = 0
    for y in range(FRAME, FRAME + h):
        row = plane[y * (w + 2 * FRAME) + FRAME :][:w]
        for x in range(0, w - 3, 4):
            one[row[x] & LAST] += 1
            two[row[x + 1] & LAST] += 1
            three[row[x + 2] & LAST] += 1
            four[row[x + 3] & LAST] += 1
        for x in range(w - w % 4, w):
            one[row[x] & LAST] += 1
    for level in range(LEVELS):
        one[level] += two[level] + three[level] + four[level]


@njit
def emboss(plane: Any, h: Any, w: Any, out: Any) -> None:
    """Correlate with ``[[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]`` and stop at 0 and 255.

    Args:
        plane: A framed plane of int16 in 0 .. 255; its frame is overwritten.
        h: The plane's height.
        w: The plane's width.
        out: A framed plane of int16.
    """
    mirror_frame(plane, h, w, np.int64(1))
    first, count, s = span(h, w)
    for j in range(count):
        i = Z(j) + first
        dark = H(H(plane[i - s - ONE] + plane[i - s - ONE]) + H(plane[i - s] + plane[i - ONE]))
        light = H(H(plane[i + s + ONE] + plane[i + s + ONE]) + H(plane[i + s] + plane[i + ONE]))
        out[i] = max(H(0), min(H(255), H(H(light - dark) + plane[i])))


@njit
def box_levels(plane: Any, h: Any, w: Any, sums: Any, out: Any) -> None:
    """The mean of each 3 x 3 neighbourhood, rounded.

    Args:
        plane: A framed plane of int16 in 0 .. 255; its frame is overwritten.
        h: The plane's height.
        w: The plane's width.
        sums: A framed plane of int16; overwritten.
        out: A framed plane of int16.
    """
    mirror_frame(plane, h, w, np.int64(1))
    first, count, s = span(h, w)
    for j in range(count + 2 * W(s)):
        i = Z(j) + first - s
        sums[i] = H(H(plane[i - ONE] + plane[i]) + plane[i + ONE])
    for j in range(count):
        i = Z(j) + first
        total = H(H(sums[i - s] + sums[i]) + sums[i + s])
        # 7282 / 2**16 is a ninth and so little that no whole number is missed below 2,304.
        out[i] = H(W(W(total + H(4)) * W(7282)) >> W(16))
