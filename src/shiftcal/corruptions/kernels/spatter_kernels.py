"""Compiled spatter: water and mud. Importing this file imports numba: import it in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions.kernels.digital_kernels import NEAREST, scratch_size, smooth_field
from shiftcal.corruptions.kernels.fixed_point_kernels import (
    FRAME,
    ONE,
    Z,
    clear_frame,
    mirror_frame,
    span,
)
from shiftcal.corruptions.kernels.random_kernels import U, word
from shiftcal.numerics.jit import compiled

# --------------------------------------------------------------------------------------
# The relief of water: distances made into light and shade.
#
# Each step gives what OpenCV's function of that name gives, borders mirrored without repeating the
# last pixel (its default).
# --------------------------------------------------------------------------------------

I16, I32, F32 = np.int16, np.int32, np.float32
LEVELS, LAST = 256, 255
_UNITS = F32(1 << 23)  # distances are 0 or from 1 to 20, so multiples of 2**-23
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
    for j in range(count + 2 * I32(s)):
        i = Z(j) + first - s
        left, here, right = distances[i - ONE], distances[i], distances[i + ONE]
        sums[i] = I32(I32(I32(left * _UNITS) + I32(here * _UNITS)) + I32(right * _UNITS))
    for j in range(count):
        i = Z(j) + first
        total = I32(I32(sums[i - s] + sums[i]) + sums[i + s])
        out[i] = I16(I32(F32(np.float64(total) * _NINTH)))


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
    scale = F32(255) / F32(others)
    table[darkest] = 0
    total = 0
    for level in range(LEVELS):
        total += table[level]
        table[level] = I32(np.rint(F32(total) * scale))
    first, count, _ = span(h, w)
    for j in range(count):
        i = Z(j) + first
        plane[i] = I16(table[plane[i] & LAST])


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
        dark = I16(
            I16(plane[i - s - ONE] + plane[i - s - ONE]) + I16(plane[i - s] + plane[i - ONE])
        )
        light = I16(
            I16(plane[i + s + ONE] + plane[i + s + ONE]) + I16(plane[i + s] + plane[i + ONE])
        )
        out[i] = max(
            I16(0),
            min(I16(255), I16(I16(light - dark) + plane[i])),
        )


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
    for j in range(count + 2 * I32(s)):
        i = Z(j) + first - s
        sums[i] = I16(I16(plane[i - ONE] + plane[i]) + plane[i + ONE])
    for j in range(count):
        i = Z(j) + first
        total = I16(I16(sums[i - s] + sums[i]) + sums[i + s])
        # 7282 / 2**16 is a ninth and so little that no whole number is missed below 2,304.
        out[i] = I16(I32(I32(total + I16(4)) * I32(7282)) >> I32(16))


# --------------------------------------------------------------------------------------
# Edges of a plane after Canny (1986).
#
# All arithmetic is in whole numbers, as in OpenCV with an aperture of 3 and the L1 gradient.
# --------------------------------------------------------------------------------------

WEAK, STRONG = 1, 2

_TAN_22_5 = I32(13573)  # tan(22.5 degrees) in units of 2**-15; tan(67.5 degrees) is 2 more


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
        x = I16(I16(I16(c - a) + I16(r - p)) + I16(I16(f - d) + I16(f - d)))
        y = I16(I16(I16(p - a) + I16(r - c)) + I16(I16(q - b) + I16(q - b)))
        gx[i], gy[i] = x, y
        size[i] = I16(I16(max(x, I16(-x))) + I16(max(y, I16(-y))))


@njit(inline="always")
def _thin(work: Any, h: Any, w: Any, low: Any, high: Any, state: Any) -> None:
    gx, gy, size = work[0], work[1], work[2]
    first, count, s = span(h, w)
    least, strong = I16(low), I16(high)
    for j in range(count):
        i = Z(j) + first
        x, y, m = gx[i], gy[i], size[i]
        left, right, up, down = size[i - ONE], size[i + ONE], size[i - s], size[i + s]
        up_left, up_right = size[i - s - ONE], size[i - s + ONE]
        down_left, down_right = size[i + s - ONE], size[i + s + ONE]
        across = I32(I32(max(x, I16(-x))) * _TAN_22_5)
        along = I32(I32(max(y, I16(-y))) << I32(15))
        flat = along < across
        steep = along > I32(across + I32(I32(max(x, I16(-x))) << I32(16)))
        falling = I16(x ^ y) < 0
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


# --------------------------------------------------------------------------------------
# Distances to the nearest edge by a chamfer (Borgefors, 1986).
#
# Steps of 1, 1.4 and 2.1969 (along, across, knight's move) are added one at a time in float32, as
# in
# OpenCV with the mask of 5 x 5 on processors of the x86 family (elsewhere it counts in units of
# 2**-16, with differences below 0.0005).
# --------------------------------------------------------------------------------------


_STEP, _DIAGONAL, _KNIGHT = F32(1), F32(1.4), F32(2.1969)
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
    far = F32(limit)
    for j in range(out.shape[0]):
        out[j] = F32(0) if state[j] == 2 else far
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


# --------------------------------------------------------------------------------------
# Water and mud on images.
# --------------------------------------------------------------------------------------

F, H, W = np.float32, np.int16, np.int32
_LOW = U(0xFFFF)
_BLOCK = 512
_WHITE = F(255)
_LOW_GRADIENT, _HIGH_GRADIENT, _FARTHEST = 50, 150, 20
_LEAST_MUD = F(0.8)
_PALE_TURQUOISE = (F(175 / 255), F(238 / 255), F(238 / 255))
_BROWN = (F(63 / 255), F(42 / 255), F(20 / 255))


@njit
def fill_normals(out: Any, table: Any, a: Any, b: Any) -> None:
    """Normal deviates: numbers ``2 i`` and ``2 i + 1`` are the halves of word ``i`` of the stream.

    Args:
        out: Flat float32.
        table: ``(65536,)`` float32, all equally likely.
        a: One half of the key.
        b: The other.
    """
    n = out.shape[0]
    words = np.empty(_BLOCK, np.uint32)
    for start in range(0, n, 2 * _BLOCK):
        pairs = min(_BLOCK, (n - start) // 2)
        for i in range(pairs):
            words[i] = word(U(U(start // 2) + U(i)), a, b)
        for i in range(pairs):
            out[start + 2 * i] = table[words[i] & _LOW]
            out[start + 2 * i + 1] = table[words[i] >> U(16)]
    if n % 2 == 1:
        out[n - 1] = table[word(U(n // 2), a, b) & _LOW]


@njit
def fill_liquid(field: Any, levels: Any, out: Any) -> None:
    """Whole grey levels, 0 where the field is too low; above 255 they begin again at 0.

    Args:
        field: ``(h, w)`` float32, grey levels without their mean.
        levels: The mean, and the least value that is wet.
        out: A framed plane of int16.
    """
    h, w = field.shape
    mean, least = levels
    for y in range(h):
        row, line = field[y], out[(y + FRAME) * (w + 2 * FRAME) + FRAME :][:w]
        for x in range(w):
            value = row[x] + mean
            line[x] = H(W(value) & W(255)) if value >= least else H(0)


@njit(inline="always")
def water(liquid: Any, h: Any, w: Any, planes: Any, floats: Any, counts: Any) -> Any:
    """The light of a liquid layer, and the largest value in it.

    Args:
        liquid: A framed plane of int16 in 0 .. 255; its frame will be 0.
        h: The plane's height.
        w: The plane's width.
        planes: ``(4, framed_size)`` int16; overwritten.
        floats: ``(2, framed_size)`` float32; the first will be the light, in whole numbers.
        counts: ``(4, 256)`` int32; overwritten.
    """
    state, sums = planes[3].view(np.uint8)[: liquid.shape[0]], floats[1].view(np.int32)
    edges(liquid, h, w, _LOW_GRADIENT, _HIGH_GRADIENT, state, planes)
    distances(state, h, w, _FARTHEST, floats[0])
    box_distances(floats[0], h, w, sums, planes[0])
    equalize(planes[0], h, w, counts)
    emboss(planes[0], h, w, planes[1])
    box_levels(planes[1], h, w, planes[0], planes[2])
    largest = W(0)
    light, shade = floats[0], planes[2]
    for i in range(light.shape[0]):
        value = W(W(liquid[i]) * W(shade[i]))
        light[i] = F(value)
        largest = max(largest, value)
    return largest


@njit(inline="always")
def _add_water(image: Any, out: Any, light: Any, largest: Any, strength: Any) -> None:
    h, w = image.shape[0], image.shape[1] // 3
    one, two, three = Z(1), Z(2), Z(3)
    c0, c1, c2 = _PALE_TURQUOISE
    for y in range(h):
        source, to = image[y], out[y]
        line = light[(y + FRAME) * (w + 2 * FRAME) + FRAME :][:w]
        for x in range(w):
            i = three * Z(x)
            m = line[x] / largest * strength
            to[i] = np.uint8(W(min(F(source[i]) / _WHITE + m * c0, F(1)) * _WHITE))
            to[i + one] = np.uint8(W(min(F(source[i + one]) / _WHITE + m * c1, F(1)) * _WHITE))
            to[i + two] = np.uint8(W(min(F(source[i + two]) / _WHITE + m * c2, F(1)) * _WHITE))


@njit(inline="always")
def _add_mud(image: Any, out: Any, mud: Any) -> None:
    h, w = image.shape[0], image.shape[1] // 3
    one, two, three = Z(1), Z(2), Z(3)
    c0, c1, c2 = _BROWN
    for y in range(h):
        source, to, line = image[y], out[y], mud[y]
        for x in range(w):
            i = three * Z(x)
            m = line[x] if line[x] >= _LEAST_MUD else F(0)
            rest = F(1) - m
            r = F(source[i]) / _WHITE * rest + c0 * m
            g = F(source[i + one]) / _WHITE * rest + c1 * m
            b = F(source[i + two]) / _WHITE * rest + c2 * m
            to[i] = np.uint8(W(min(r, F(1)) * _WHITE))
            to[i + one] = np.uint8(W(min(g, F(1)) * _WHITE))
            to[i + two] = np.uint8(W(min(b, F(1)) * _WHITE))


@compiled()
def splash(
    images: Any, out: Any, table: Any, weights: Any, levels: Any, strength: Any, keys: Any
) -> None:
    """Water on a block of images. An image on which no drop falls stays as it is.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        table: ``(65536,)`` float32, all equally likely, of mean 0 in grey levels.
        weights: ``(2 r + 1,)`` float32, which smooth the field.
        levels: The mean of the field and its least value that is wet, in grey levels.
        strength: The light of the brightest drop.
        keys: ``(m, 2)`` uint32; word ``i`` of an image's stream makes pixels ``2 i``, ``2 i + 1``.
    """
    m, h, w = images.shape[0], images.shape[1], images.shape[2] // 3
    field = np.empty((h, w), np.float32)
    scratch = np.empty(scratch_size(h, w, weights.shape[0]), np.float32)
    size = (h + 2 * FRAME) * (w + 2 * FRAME)
    liquid = np.empty(size, np.int16)
    planes, floats = np.zeros((4, size), np.int16), np.zeros((2, size), np.float32)
    counts = np.empty((4, 256), np.int32)
    for j in range(m):
        fill_normals(field.reshape(-1), table, keys[j, 0], keys[j, 1])
        smooth_field(field, weights, NEAREST, scratch)
        fill_liquid(field, levels, liquid)
        largest = water(liquid, h, w, planes, floats, counts)
        if largest == 0:
            largest = W(1)
        _add_water(images[j], out[j], floats[0], F(largest), strength)


@compiled()
def muddy(
    images: Any, out: Any, table: Any, weights: Any, levels: Any, blur: Any, keys: Any
) -> None:
    """Mud on a block of images.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        table: As in :func:`splash`.
        weights: As in :func:`splash`.
        levels: As in :func:`splash`.
        blur: ``(2 q + 1,)`` float32, which smooth the mud's outline.
        keys: As in :func:`splash`.
    """
    m, h, w = images.shape[0], images.shape[1], images.shape[2] // 3
    mean, least = levels
    taps = max(weights.shape[0], blur.shape[0])
    field, scratch = np.empty((h, w), np.float32), np.empty(scratch_size(h, w, taps), np.float32)
    flat = field.reshape(-1)
    for j in range(m):
        fill_normals(flat, table, keys[j, 0], keys[j, 1])
        smooth_field(field, weights, NEAREST, scratch)
        for i in range(flat.shape[0]):
            flat[i] = F(1) if flat[i] + mean > least else F(0)
        smooth_field(field, blur, NEAREST, scratch)
        _add_mud(images[j], out[j], field)
