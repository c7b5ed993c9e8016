"""Compiled snow, frost, fog and brightness. Imports numba: import in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions.kernels.blur_kernels import Index, line_row, line_starts
from shiftcal.corruptions.kernels.random_kernels import U, word
from shiftcal.numerics.jit import compiled

# --------------------------------------------------------------------------------------
# Falling snow.
# --------------------------------------------------------------------------------------

_ANGLE = U(1 << 31)  # the number of the stream that gives the angle; those of the field come first
_LOW = U(0xFFFF)
_RED, _GREEN, _BLUE = np.float32(0.299), np.float32(0.587), np.float32(0.114)
_ABOVE = np.float32(2.0**-12)  # lifts whole levels above rounding errors before the cut
_WHITE = np.float32(255)


@compiled()
def snow_on(images: Any, out: Any, flakes: Any, line: Any, mix: Any, keys: Any) -> None:
    """Lay a snow layer of its own over every image.

    Args:
        images: ``(m, height, 3 width)`` uint8.
        out: Of the same shape.
        flakes: Arguments of :func:`flake_field` from ``table`` on.
        line: Arguments of :func:`fall` from ``weights`` on, without the angle.
        mix: How much of the image stays as it is.
        keys: ``(m, 2)`` uint32. The field takes the numbers from 0, the angle number 2**31.
    """
    m, height, width = images.shape[0], images.shape[1], images.shape[2] // 3
    weights, dx, dy, left, right = line
    padded = np.empty((height, left + width + right), np.float32)
    layer = np.empty((height, width), np.float32)
    scratch = flake_scratch(flakes[1][2], flakes[2][2], width)
    for k in range(m):
        a, b = keys[k, 0], keys[k, 1]
        flake_field(padded, left, (a, b), scratch, *flakes)
        angle = np.int64(word(_ANGLE, a, b) >> U(20))
        fall(padded, layer, weights, dx[angle], dy[angle], left)
        lay_over(images[k], out[k], layer, mix)


@njit(nogil=True)
def flake_scratch(drawn_height: Any, drawn_width: Any, width: Any) -> Any:
    """Memory for the deviates drawn, of which there is an even number, and for enlarged rows."""
    drawn = np.empty(drawn_height * drawn_width + 1, np.float32)
    return drawn, np.empty((drawn_height, width), np.float32)


@njit(nogil=True)
def flake_field(
    padded: Any,
    left: Any,
    key: Any,
    scratch: Any,
    table: Any,
    rows: Any,
    columns: Any,
    threshold: Any,
) -> None:
    """A field of normal deviates, enlarged, in whole grey levels, and 0 below the threshold.

    Args:
        padded: ``(height, left + width + any)`` float32, written but for the padding.
        left: Values of padding on the left.
        key: Its two halves; number ``i`` of the stream gives the deviates ``2 i`` and ``2 i + 1``.
        scratch: From :func:`flake_scratch`; the first part is left with the deviates drawn.
        table: ``(65536,)`` float32, equally likely deviates in grey levels.
        rows: Source rows and weights ``(height,)`` of the enlargement, and how many there are.
        columns: The same for columns.
        threshold: In grey levels.
    """
    row, row_weight, height = rows
    column, column_weight, width = columns
    drawn, wide = scratch
    for i in range((height * width + 1) // 2):
        bits = word(U(i), key[0], key[1])
        drawn[Index(2 * i)] = table[bits & _LOW]
        drawn[Index(2 * i + 1)] = table[bits >> U(16)]
    for y in range(height):
        start = Index(y * width)
        for x in range(column.shape[0]):
            at, t = start + Index(column[x]), column_weight[x]
            wide[y, x] = (np.float32(1) - t) * drawn[at] + t * drawn[at + Index(1)]
    for y in range(row.shape[0]):
        flakes = padded[y, left : left + column.shape[0]]
        _thresholded(wide[row[y]], wide[row[y] + 1], row_weight[y], flakes, threshold)


@njit
def _thresholded(upper: Any, lower: Any, t: Any, row: Any, threshold: Any) -> None:
    s = np.float32(1) - t
    for x in range(row.shape[0]):
        level = s * upper[x] + t * lower[x]
        level = level if level < _WHITE else _WHITE
        row[x] = np.float32(np.int32(level if level >= threshold else np.float32(0)))


@njit(nogil=True)
def fall(padded: Any, layer: Any, weights: Any, dx: Any, dy: Any, left: Any) -> None:
    """Blur a field along a line into a layer of whole grey levels.

    Args:
        padded: ``(height, left + width + right)`` float32; the padding is written.
        layer: ``(height, width)`` float32, written.
        weights: ``(taps,)`` float32.
        dx: ``(taps,)`` steps to the right.
        dy: ``(taps,)`` steps downwards.
        left: How far the line reaches to the left.
    """
    height, stride = padded.shape
    width = layer.shape[1]
    for y in range(height):
        padded[y, :left] = padded[y, left]
        padded[y, left + width :] = padded[y, left + width - 1]
    starts = np.empty(weights.shape[0], np.uint64)
    plane = padded.reshape(height * stride)
    for y in range(height):
        total = layer[y]
        total[:] = np.float32(0.5)
        line_starts(starts, dx, dy, y, (height, stride, left, 1))
        line_row(total, plane, starts, weights)
        for x in range(width):
            total[x] = np.float32(np.int32(total[x]))


@njit(nogil=True)
def lay_over(image: Any, out: Any, layer: Any, mix: Any) -> None:
    """Whiten an image and add a snow layer and the same layer upside down.

    A value becomes the larger of ``x + s`` and ``mix x + (1 - mix) white + s``.

    Args:
        image: ``(height, 3 width)`` uint8.
        out: Of the same shape.
        layer: ``(height, width)`` float32, in grey levels.
        mix: How much of the image stays as it is.
    """
    height, width = layer.shape
    n = 3 * width
    values = np.zeros(n + 2, np.float32)
    white = np.empty(n, np.float32)
    snow = np.empty(n, np.float32)
    for y in range(height):
        for j in range(n):
            values[j] = image[y, j]
        _whites(values, white, np.float32(1) - mix)
        _spread(layer[y], layer[height - 1 - y], white, snow)
        for j in range(n):
            plain = values[j] + snow[j]
            mixed = mix * values[j] + white[j]
            level = plain if plain > mixed else mixed
            out[y, j] = np.uint8(np.int32(level if level < _WHITE else _WHITE))


@njit
def _whites(values: Any, white: Any, part: Any) -> None:
    """Right where a pixel begins; the values between are not used, but there is no gap to jump."""
    factor = np.float32(1.5) * part
    red, green, blue = factor * _RED, factor * _GREEN, factor * _BLUE
    least = np.float32(127.5) * part
    for k in range(white.shape[0]):
        j = Index(k)
        white[j] = (
            red * values[j] + green * values[j + Index(1)] + blue * values[j + Index(2)] + least
        )


@njit
def _spread(here: Any, there: Any, white: Any, snow: Any) -> None:
    width = here.shape[0]
    for x in range(width):
        j = Index(3 * x)
        flakes = here[x] + there[Index(width - 1 - x)] + _ABOVE
        whitened = white[j] + flakes
        snow[j], snow[j + Index(1)], snow[j + Index(2)] = flakes, flakes, flakes
        white[j], white[j + Index(1)], white[j + Index(2)] = whitened, whitened, whitened


# --------------------------------------------------------------------------------------
# Crops of textures laid over images.
# --------------------------------------------------------------------------------------

_WHITE_LEVEL = 255.0


@njit(inline="always")
def _below(count: Any, i: Any, a: Any, b: Any) -> Any:
    """A number from 0 to ``count - 1`` out of the ``i``-th word of the stream."""
    return np.int64((np.uint64(word(i, a, b)) * np.uint64(count)) >> np.uint64(32))


@compiled()
def blend(images: Any, out: Any, texels: Any, textures: Any, weights: Any, keys: Any) -> None:
    """``floor(min(weights[0] x + weights[1] texture, 255))`` with a random crop for each image.

    Words 0, 1 and 2 of an image's stream choose the texture, the row and the column.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        texels: The values of all textures, flat uint8.
        textures: ``(k, 5)`` int64: where each begins, its height and width in pixels, and how
            many rows and columns a crop can begin at. Crops go on at the other side of a texture.
        weights: Two numbers.
        keys: ``(m, 2)`` uint32.
    """
    h, size = images.shape[1], images.shape[2]
    for j in range(images.shape[0]):
        a, b = keys[j, 0], keys[j, 1]
        texture = textures[_below(textures.shape[0], 0, a, b)]
        first, height, width = texture[0], texture[1], texture[2]
        top, left = _below(texture[3], 1, a, b), 3 * _below(texture[4], 2, a, b)
        for y in range(h):
            row = texels[first + (top + y) % height * 3 * width :][: 3 * width]
            done, at = 0, left
            while done < size:
                run = min(size - done, 3 * width - at)
                _blend_run(images[j, y, done:], row[at : at + run], weights, out[j, y, done:])
                done, at = done + run, 0


@njit
def _blend_run(values: Any, texels: Any, weights: Any, out: Any) -> None:
    own, other = weights
    for i in range(texels.shape[0]):
        mixed = own * np.float64(values[i]) + other * np.float64(texels[i])
        out[i] = np.uint8(np.int32(min(mixed, _WHITE_LEVEL)))


# --------------------------------------------------------------------------------------
# Fog from a diamond-square map.
#
# A grid of ``n x n`` known points becomes one of ``2n x 2n``. The new points are made in three
# planes of ``n x n``: those to the right of the known ones, those below them, and the middles of
# the squares. All loops run along contiguous rows that way, and the last grid, the largest, need
# not be put together at all.
# --------------------------------------------------------------------------------------

F = np.float32
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


# --------------------------------------------------------------------------------------
# The value of HSV raised, in RGB.
# --------------------------------------------------------------------------------------

I32 = np.int32
U64 = np.uint64
# Rounding must not take a level from what is a whole number.
_MARGIN = F(1e-4)


@compiled(error_model="numpy")
def raise_value(images: Any, out: Any, rise: Any) -> None:
    """Scale every pixel so that its largest channel rises by ``rise``, to 255 at the most.

    Args:
        images: ``(3 s,)`` uint8, the channels of a pixel next to one another.
        out: ``(3 s,)`` uint8.
        rise: Grey levels, float32.
    """
    for pixel in range(images.shape[0] // 3):
        # Unsigned places in steps of three are what the compiler takes many pixels at a time of.
        red, green, blue = _places(pixel)
        r, g, b = I32(images[red]), I32(images[green]), I32(images[blue])
        value = max(r, g, b)
        # Black has no channel that could be scaled: it becomes grey.
        black = I32(value == I32(0))
        raised = F(F(value) + rise)
        raised = raised if raised < F(255) else F(255)
        scale = F(raised / F(I32(value + black)))
        r, g, b = I32(r + black), I32(g + black), I32(b + black)
        out[red] = np.uint8(I32(F(F(F(r) * scale) + _MARGIN)))
        out[green] = np.uint8(I32(F(F(F(g) * scale) + _MARGIN)))
        out[blue] = np.uint8(I32(F(F(F(b) * scale) + _MARGIN)))


@njit(inline="always")
def _places(pixel: Any) -> Any:
    first = U64(pixel) * U64(3)
    return first, first + U64(1), first + U64(2)
