"""Fog from a diamond-square map. Importing this file imports numba: only in functions.

A grid of ``n x n`` known points becomes one of ``2n x 2n``. The new points are made in three
planes of ``n x n``: those to the right of the known ones, those below them, and the middles of
the squares. All loops run along contiguous rows that way, and the last grid, the largest, need
not be put together at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.counter_kernels import U, word
from shiftcal.numerics._jit import compiled

F = np.float32
_LOW = U(0xFFFF)
_QUARTER = F(0.25)
# Exact results can be whole numbers, and a rounding error must not cost them a grey level.
_EPSILON = F(1e-4)
_KNOWN, _RIGHT, _BELOW, _MIDDLE = 0, 1, 2, 3


@compiled(error_model="numpy")
def lay_fog(images: Any, out: Any, amplitudes: Any, strength: Any, keys: Any) -> None:
    """Write ``(x + strength p) top / (top + strength)``, all in grey levels, cut to whole ones.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        amplitudes: Of the noise at each of the ``k`` refinements, float32; the map has the side
            ``2**k``, and is repeated where ``h`` or ``w`` is larger.
        strength: What the densest fog adds, in grey levels, float32.
        keys: ``(m, 2)`` uint32.
    """
    m, h, wide = images.shape
    half = 1 << (amplitudes.shape[0] - 1)
    room = np.empty(4 * half * half, np.float32)
    other = np.empty(half * half, np.float32)
    ends = np.empty((2, half), np.float32)
    fog = np.empty(2 * half, np.float32)
    spread = np.empty(wide, np.float32)
    for j in range(m):
        planes = _plasma(room, other, amplitudes, keys[j, 0], keys[j, 1])
        lowest, highest = _range(planes, ends)
        top = F(_top(images[j]))
        gain = F(top / F(top + strength))
        scale = F(F(gain * strength) / F(highest - lowest))
        for y in range(h):
            first = _KNOWN if y % 2 == 0 else _BELOW
            row = y // 2 % half
            _to_fog(fog, planes[first, row], planes[first + 1, row], lowest, scale)
            _to_channels(spread, fog)
            _blend(images[j, y], out[j, y], gain, spread)


@compiled()
def plasma_map(amplitudes: Any, a: Any, b: Any) -> Any:
    """The map of the stream with the key ``(a, b)``, before it is scaled; ``(2**k, 2**k)``."""
    half = 1 << (amplitudes.shape[0] - 1)
    room = np.empty(4 * half * half, np.float32)
    other = np.empty(half * half, np.float32)
    whole = np.empty((2 * half, 2 * half), np.float32)
    _interleave(_plasma(room, other, amplitudes, a, b), whole)
    return whole


@njit
def _plasma(room: Any, other: Any, amplitudes: Any, a: Any, b: Any) -> Any:
    """The four planes of the last grid, in ``room``; ``other`` has place for the grid before.

    With ``n`` known points a side, the stream's words ``2 n**2`` to ``3 n**2 - 1`` give the noise
    of the middles (low half) and of the points to the right (high half), ``3 n**2`` to
    ``4 n**2 - 1`` that of the points below (low half), row by row. A half word ``k`` stands for
    ``(2 k + 1) / 65536 - 1``, times the amplitude.
    """
    levels = amplitudes.shape[0]
    place, following = (room, other) if levels % 2 == 1 else (other, room)
    place[0] = F(0.0)
    planes = place[:4].reshape((4, 1, 1))
    for level in range(levels):
        n = 1 << level
        planes = place[: 4 * n * n].reshape((4, n, n))
        scale = F(amplitudes[level] * F(2.0**-15))
        least = F(amplitudes[level] * F(2.0**-16 - 1.0))
        words = (U(2 * n * n), U(3 * n * n), a, b)
        for i in range(n):
            _noise(planes[_MIDDLE, i], planes[_RIGHT, i], planes[_BELOW, i], i, words, scale, least)
        for i in range(n):
            below = planes[_KNOWN, (i + 1) % n]
            _add_to_middle(planes[_MIDDLE, i], planes[_KNOWN, i], below)
        for i in range(n):
            known, middle = planes[_KNOWN, i], planes[_MIDDLE, i]
            _add_to_right(planes[_RIGHT, i], known, middle, planes[_MIDDLE, (i + n - 1) % n])
            _add_to_below(planes[_BELOW, i], known, middle, planes[_KNOWN, (i + 1) % n])
        if level + 1 < levels:
            _interleave(planes, following[: 4 * n * n].reshape((2 * n, 2 * n)))
            place, following = following, place
    return planes


@njit
def _noise(middle: Any, right: Any, below: Any, i: Any, words: Any, scale: Any, least: Any) -> None:
    n = middle.shape[0]
    first, second, a, b = words
    first, second = U(first + U(i * n)), U(second + U(i * n))
    for j in range(n):
        bits = word(U(first + U(j)), a, b)
        middle[j] = F(np.int32(bits & _LOW)) * scale + least
        right[j] = F(np.int32(bits >> U(16))) * scale + least
    for j in range(n):
        bits = word(U(second + U(j)), a, b)
        below[j] = F(np.int32(bits & _LOW)) * scale + least


@njit
def _add_to_middle(middle: Any, known: Any, below: Any) -> None:
    last = known.shape[0] - 1
    for j in range(last):
        middle[j] += ((known[j] + below[j]) + (known[j + 1] + below[j + 1])) * _QUARTER
    middle[last] += ((known[last] + below[last]) + (known[0] + below[0])) * _QUARTER


@njit
def _add_to_right(right: Any, known: Any, middle: Any, middle_above: Any) -> None:
    last = known.shape[0] - 1
    for j in range(last):
        right[j] += ((middle[j] + middle_above[j]) + (known[j] + known[j + 1])) * _QUARTER
    right[last] += ((middle[last] + middle_above[last]) + (known[last] + known[0])) * _QUARTER


@njit
def _add_to_below(below: Any, known: Any, middle: Any, known_below: Any) -> None:
    n = known.shape[0]
    below[0] += ((middle[0] + middle[n - 1]) + (known[0] + known_below[0])) * _QUARTER
    for j in range(1, n):
        below[j] += ((middle[j] + middle[j - 1]) + (known[j] + known_below[j])) * _QUARTER


@njit
def _interleave(planes: Any, whole: Any) -> None:
    for i in range(planes.shape[1]):
        _interleave_rows(planes[_KNOWN, i], planes[_RIGHT, i], whole[2 * i])
        _interleave_rows(planes[_BELOW, i], planes[_MIDDLE, i], whole[2 * i + 1])


@njit
def _interleave_rows(even: Any, odd: Any, row: Any) -> None:
    for j in range(even.shape[0]):
        row[2 * j] = even[j]
        row[2 * j + 1] = odd[j]


@njit
def _range(planes: Any, ends: Any) -> Any:
    """The lowest and the highest value, column by column first: loops that vectorise."""
    low, high = ends[0], ends[1]
    n = planes.shape[1]
    for j in range(n):
        low[j] = high[j] = planes[0, 0, j]
    for i in range(n):
        _extend(low, high, planes[0, i], planes[1, i])
        _extend(low, high, planes[2, i], planes[3, i])
    lowest, highest = low[0], high[0]
    for j in range(n):
        lowest, highest = min(lowest, low[j]), max(highest, high[j])
    return lowest, highest


@njit
def _extend(low: Any, high: Any, one: Any, two: Any) -> None:
    for j in range(low.shape[0]):
        x, y = one[j], two[j]
        lowest, highest = low[j], high[j]
        less = x if x < y else y
        more = x if x > y else y
        low[j] = less if less < lowest else lowest
        high[j] = more if more > highest else highest


@njit
def _top(image: Any) -> Any:
    top = np.uint8(0)
    for y in range(image.shape[0]):
        row = image[y]
        for k in range(row.shape[0]):
            top = max(top, row[k])
    return top


@njit
def _to_fog(fog: Any, even: Any, odd: Any, lowest: Any, scale: Any) -> None:
    for j in range(even.shape[0]):
        fog[2 * j] = (even[j] - lowest) * scale + _EPSILON
        fog[2 * j + 1] = (odd[j] - lowest) * scale + _EPSILON


@njit
def _to_channels(spread: Any, fog: Any) -> None:
    width, side = spread.shape[0] // 3, fog.shape[0]
    for start in range(0, width, side):
        piece = spread[3 * start :]
        for x in range(min(side, width - start)):
            piece[3 * x] = fog[x]
            piece[3 * x + 1] = fog[x]
            piece[3 * x + 2] = fog[x]


@njit
def _blend(row: Any, out: Any, gain: Any, fog: Any) -> None:
    for k in range(row.shape[0]):
        out[k] = np.uint8(np.int32(F(row[k]) * gain + fog[k]))
