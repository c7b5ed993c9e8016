"""Compiled contrast, saturate, pixelate, elastic transform. Imports numba: import in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions.kernels.jpeg_kernels import transpose_block
from shiftcal.corruptions.kernels.random_kernels import add, inlined, inner, mul, shr, word
from shiftcal.numerics.jit import compiled

# --------------------------------------------------------------------------------------
# Values drawn towards their channel's mean.
# --------------------------------------------------------------------------------------

F = np.float32
I32 = np.int32
U32 = np.uint32
# A run holds whole pixels and whole vectors, so that loops over it need not know of channels.
_RUN = 96
_MARGIN = 1e-4


@compiled(error_model="numpy")
def draw_to_mean(images: Any, out: Any, factor: Any) -> None:
    """``floor(mean + factor * (x - mean))`` with the mean of the image's channel.

    Args:
        images: ``(m, s)`` uint8, the channels next to one another.
        out: ``(m, s)`` uint8.
        factor: float32, from 0 to 1.
    """
    m, size = images.shape
    sums = np.empty(_RUN, np.uint32)
    offsets = np.empty(_RUN, np.float32)
    for j in range(m):
        _add_up(images[j], sums)
        _offsets(sums, size // 3, factor, offsets)
        for start in range(0, size, _RUN):
            end = min(start + _RUN, size)
            _draw(images[j, start:end], out[j, start:end], factor, offsets)


@njit(error_model="numpy")
def _add_up(values: Any, sums: Any) -> None:
    """The sum over runs of each place in a run. 2**32 suffices for images of 1.6e9 values."""
    for i in range(_RUN):
        sums[i] = U32(0)
    for start in range(0, values.shape[0], _RUN):
        run = values[start : start + _RUN]
        for i in range(run.shape[0]):
            sums[i] = U32(sums[i] + U32(run[i]))


@njit(error_model="numpy")
def _offsets(sums: Any, pixels: Any, factor: Any, offsets: Any) -> None:
    for c in range(3):
        total = np.int64(0)
        for i in range(c, _RUN, 3):
            total += np.int64(sums[i])
        # The margin keeps images of one colour as they are: rounding, of 2.5e-5 at the most, would
        # take a whole level from most of them.
        offset = F((1.0 - np.float64(factor)) * (total / pixels) + _MARGIN)
        for i in range(c, _RUN, 3):
            offsets[i] = offset


@njit(error_model="numpy")
def _draw(values: Any, result: Any, factor: Any, offsets: Any) -> None:
    for i in range(values.shape[0]):
        result[i] = np.uint8(I32(F(F(F(values[i]) * factor) + offsets[i])))


# --------------------------------------------------------------------------------------
# The saturation of HSV changed, in RGB.
# --------------------------------------------------------------------------------------

U64 = np.uint64
# Rounding must not take a level from what is a whole number.
_SATURATE_MARGIN = F(1e-4)


@compiled(error_model="numpy")
def change_saturation(images: Any, out: Any, factor: Any, extra: Any) -> None:
    """Move every channel away from the largest, or towards it, in proportion to the distance.

    Args:
        images: ``(3 s,)`` uint8, the channels of a pixel next to one another.
        out: ``(3 s,)`` uint8.
        factor: Of the saturation, float32.
        extra: Saturation added after that, float32.
    """
    for pixel in range(images.shape[0] // 3):
        # Unsigned places in steps of three are what the compiler takes many pixels at a time of.
        red, green, blue = _places(pixel)
        r, g, b = I32(images[red]), I32(images[green]), I32(images[blue])
        value = max(r, g, b)
        spread = I32(value - min(r, g, b))
        # Grey has the hue of red, and so green and blue are what moves.
        grey = I32(spread == I32(0))
        full = F(value)
        moved = F(F(factor * F(spread)) + F(extra * full))
        moved = moved if moved < full else full
        scale = F(moved / F(I32(spread + grey)))
        top = F(full + _SATURATE_MARGIN)
        out[red] = np.uint8(I32(F(top - F(F(I32(value - r)) * scale))))
        out[green] = np.uint8(I32(F(top - F(F(I32(I32(value - g) + grey)) * scale))))
        out[blue] = np.uint8(I32(F(top - F(F(I32(I32(value - b) + grey)) * scale))))


@njit(inline="always")
def _places(pixel: Any) -> Any:
    first = U64(pixel) * U64(3)
    return first, first + U64(1), first + U64(2)


# --------------------------------------------------------------------------------------
# Fewer, larger pixels.
#
# Means along a row are taken of 32 rows at once, turned round so that the same pixel of all rows is
# one piece of memory. Arrays are flat and their parts named by where they start: a slice made in a
# loop costs more here than what is done to it. Places are unsigned, or numba would ask at every one
# whether it counts from the end.
# --------------------------------------------------------------------------------------

I = np.int32  # noqa: E741
U = np.uint64
_STRIP = 32  # rows
_PIXEL = 3 * _STRIP  # values of one column of a strip
_PLACES = 22  # of the weights, as in Pillow


@compiled()
def enlarge_pixels(
    images: Any, out: Any, shape: Any, down: Any, across: Any, shown: Any, columns: Any
) -> None:
    """Replace images by the means of boxes, each shown at the size of the box.

    Args:
        images: Flat uint8, of any number of images.
        out: The same size, to be written in full.
        shape: Height of an image, and values in a row.
        down: ``(boxes, 2)`` first row of every box, and how many there are.
        across: ``(boxes, 2)``, the same of columns.
        shown: ``(boxes + 1,)`` first of the rows that show a box.
        columns: ``(width,)`` uint64, three times the box that a column shows.
    """
    height, size = shape
    stride = _padded(3 * across.shape[0])
    turned = np.empty(_padded(size) * _STRIP, np.uint8)
    means = np.empty(stride * _STRIP, np.uint8)
    narrow = np.empty(_whole_strips(height) * stride, np.uint8)
    small = np.empty(down.shape[0] * stride + 1, np.uint8)
    rows = np.empty(8 * _padded(size), np.uint8)
    total = np.empty(max(_PIXEL, stride), np.int32)
    spread = np.empty(size + 1, np.uint8)
    for image in range(0, images.shape[0], height * size):
        for top in range(0, height, _STRIP):
            for y in range(top, min(top + _STRIP, height), 8):
                _turn(images, image + y * size, (min(8, height - y), size), turned, y - top, rows)
            _means(turned, across, _PIXEL, means, total)
            _turn_back(means, narrow, top * stride, stride)
        _means(narrow, down, stride, small, total)
        _show(small, stride, shown, columns, out, image, spread)


@inlined
def _padded(size: Any) -> Any:
    return (size + 7) // 8 * 8


@inlined
def _whole_strips(height: Any) -> Any:
    return (height + _STRIP - 1) // _STRIP * _STRIP


@inner()
def _turn(images: Any, start: Any, shape: Any, turned: Any, place: Any, rows: Any) -> None:
    """Eight rows of an image, or its last, so that the rows of a column lie side by side."""
    n, size = shape
    padded = _padded(size)
    if n < 8 or start + 7 * size + padded > images.shape[0]:
        for i in range(n):
            for x in range(size):
                rows[U(i * padded) + U(x)] = images[U(start + i * size) + U(x)]
        for x in range(0, padded, 8):
            transpose_block(turned, x * _STRIP + place, _STRIP, rows, x, padded)
    else:
        for x in range(0, padded, 8):
            transpose_block(turned, x * _STRIP + place, _STRIP, images, start + x, size)


@inner()
def _turn_back(means: Any, narrow: Any, place: Any, stride: Any) -> None:
    for y in range(0, _STRIP, 8):
        for x in range(0, stride, 8):
            transpose_block(narrow, place + y * stride + x, stride, means, x * _STRIP + y, _STRIP)


@inlined
def _means(values: Any, boxes: Any, size: Any, out: Any, total: Any) -> None:
    """The means of boxes of rows of ``size`` values, halves rounded up."""
    for box in range(boxes.shape[0]):
        first, n, at = boxes[box, 0] * size, boxes[box, 1], U(box * size)
        a, b = U(first), U(first + (n - 1) * size)
        if n <= 2:
            for i in range(size):
                out[at + U(i)] = shr(add(add(values[a + U(i)], values[b + U(i)]), 1), 1)
            continue
        for i in range(size):
            total[i] = add(values[a + U(i)], values[b + U(i)])
        for row in range(1, n - 1):
            c = U(first + row * size)
            for i in range(size):
                total[i] = add(total[i], values[c + U(i)])
        share = I((1 << _PLACES) / n + 0.5)
        for i in range(size):
            out[at + U(i)] = shr(add(mul(total[i], share), 1 << (_PLACES - 1)), _PLACES)


@inner()
def _show(
    small: Any, stride: Any, shown: Any, columns: Any, out: Any, start: Any, spread: Any
) -> None:
    """Boxes at the size of the image; pixels are moved as four values, the last written over."""
    size = 3 * columns.shape[0]
    for box in range(shown.shape[0] - 1):
        for x in range(columns.shape[0]):
            p = U(box * stride) + columns[x]
            a, b, c, d = small[p], small[p + U(1)], small[p + U(2)], small[p + U(3)]
            spread[3 * x], spread[3 * x + 1], spread[3 * x + 2], spread[3 * x + 3] = a, b, c, d
        for row in range(shown[box], shown[box + 1]):
            at = U(start + row * size)
            for i in range(size):
                out[at + U(i)] = spread[i]


# --------------------------------------------------------------------------------------
# Smoothing of a random field by symmetric weights.
#
# The field is copied into a buffer with room for its border, so that a neighbour is a fixed number
# of places away and the loops can run over many rows at once, which matters when rows are short.
# --------------------------------------------------------------------------------------

NEAREST = 0
REFLECT = 1
# As many values as stay in the first-level cache with those they are made of.
_CHUNK = 2048


@njit
def border_index(i: Any, n: Any, border: Any) -> Any:
    """The index in ``0 .. n - 1`` that stands for ``i``, which may be any whole number.

    Border 0 repeats the last value (``a a | a b c | c c``), 1 mirrors with it (``b a | a b c |
    c b``) as often as it takes: what ``scipy.ndimage`` calls nearest and reflect.
    """
    if border == REFLECT:
        i = i % (2 * n)
        return min(i, 2 * n - 1 - i)
    return min(max(i, 0), n - 1)


@njit
def scratch_size(height: Any, width: Any, taps: Any) -> Any:
    """How many float32 :func:`smooth_field` and :func:`smooth_rows` need to work in."""
    tall = (height + taps - 1) * width
    wide = height * (width + taps - 1)
    return max(tall, wide) + wide


@njit(nogil=True)
def smooth_field(field: Any, weights: Any, border: Any, scratch: Any) -> None:
    """Convolve a plane with ``weights`` along both axes, columns first, in place.

    Taps are added from the middle outwards, both sides at once, at every pixel in that order.

    Args:
        field: ``(h, w)`` float32, contiguous.
        weights: ``(2 r + 1,)`` float32, symmetric; ``r`` may exceed the plane.
        border: 0 for nearest, 1 for reflect; see :func:`border_index`.
        scratch: At least :func:`scratch_size` float32, flat; overwritten.
    """
    h, w = field.shape
    r = weights.shape[0] // 2
    if r > 0:
        tall = scratch[: (h + 2 * r) * w]
        for i in range(h + 2 * r):
            _copy(tall[i * w : i * w + w], field[border_index(i - r, h, border)])
        _convolve(tall, field.reshape(-1), w, weights)
    smooth_rows(field, weights, border, scratch)


@njit(nogil=True)
def smooth_rows(field: Any, weights: Any, border: Any, scratch: Any) -> None:
    """Convolve every row of a plane with ``weights``, in place; see :func:`smooth_field`."""
    h, w = field.shape
    r = weights.shape[0] // 2
    if r == 0:
        return
    stride = w + 2 * r
    wide = scratch[: h * stride]
    result = scratch[h * stride : 2 * h * stride - 2 * r]
    for i in range(h):
        _copy(wide[i * stride + r : i * stride + r + w], field[i])
    for j in range(r):
        left, right = border_index(j - r, w, border), border_index(w + j, w, border)
        for i in range(h):
            wide[i * stride + j] = field[i, left]
            wide[i * stride + r + w + j] = field[i, right]
    _convolve(wide, result, 1, weights)
    for i in range(h):
        _copy(field[i], result[i * stride : i * stride + w])


@njit
def _convolve(source: Any, out: Any, step: Any, weights: Any) -> None:
    """``out[j]`` is the sum of ``weights[k] * source[j + k * step]``."""
    r = weights.shape[0] // 2
    for start in range(0, out.shape[0], _CHUNK):
        part = out[start : start + _CHUNK]
        centre = start + r * step
        _begin(part, source[centre:], weights[r])
        k = 1
        while k + 2 <= r:
            _add_three(part, source, centre, step, k, weights)
            k += 3
        while k <= r:
            _add_one(part, source, centre, step, k, weights)
            k += 1


@njit
def _copy(to: Any, row: Any) -> None:
    for j in range(to.shape[0]):
        to[j] = row[j]


@njit
def _begin(out: Any, row: Any, weight: Any) -> None:
    for j in range(out.shape[0]):
        out[j] = row[j] * weight


@njit
def _add_one(out: Any, source: Any, centre: Any, step: Any, k: Any, weights: Any) -> None:
    weight = weights[weights.shape[0] // 2 + k]
    before, after = source[centre - k * step :], source[centre + k * step :]
    for j in range(out.shape[0]):
        out[j] += (before[j] + after[j]) * weight


@njit
def _add_three(out: Any, source: Any, centre: Any, step: Any, k: Any, weights: Any) -> None:
    r = weights.shape[0] // 2
    w1, w2, w3 = weights[r + k], weights[r + k + 1], weights[r + k + 2]
    b1, a1 = source[centre - k * step :], source[centre + k * step :]
    b2, a2 = source[centre - (k + 1) * step :], source[centre + (k + 1) * step :]
    b3, a3 = source[centre - (k + 2) * step :], source[centre + (k + 2) * step :]
    for j in range(out.shape[0]):
        out[j] = out[j] + (b1[j] + a1[j]) * w1 + (b2[j] + a2[j]) * w2 + (b3[j] + a3[j]) * w3


# --------------------------------------------------------------------------------------
# Smooth random fields from few cosines.
#
# Let ``S`` be the smoothing along an axis, ``L`` the part of it that few cosines carry, and ``N``
# the noise. Then ``S N S = S N L + L N S - L N L + (S - L) N (S - L)``, where the last term is
# nothing to speak of, and the others need only the products of ``N`` with the cosines.
# --------------------------------------------------------------------------------------

_LOW = U32(0xFFFF)
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
        bits = word(
            U32(U32(first) + U32(U32(step) * U32(j))),
            a,
            b,
        )
        low[j] = F(np.int32(bits & _LOW)) * scale + least
        high[j] = F(np.int32(bits >> U32(16))) * scale + least


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
            first = U32((start + i) * steps[0])
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


# --------------------------------------------------------------------------------------
# Elastic transform.
# --------------------------------------------------------------------------------------

_JITTER = U32(0xFFFFFFF0)


@compiled(error_model="numpy")
def warp(images: Any, out: Any, jitter: Any, keys: Any) -> None:
    """Only the random affine map.

    Args:
        images: ``(m, h, w, 3)`` uint8.
        out: ``(m, h, w, 3)`` uint8.
        jitter: How far a corner of the map may move along either axis, in pixels.
        keys: ``(m, 2)`` uint32. The six moves are the words from 2**32 - 16.
    """
    m, h, w = images.shape[:3]
    plane = np.zeros((h + 1, w + 1), np.uint64)
    points, at, shares = _row_buffers(w)
    for j in range(m):
        pack(images[j], plane)
        inverse = _random_affine(h, w, jitter, keys[j, 0], keys[j, 1])
        for y in range(h):
            _affine_row(points, y, inverse)
            locate(points[0], points[1], (h, w), F(0), FOR_EIGHT, at, shares)
            row = out[j, y].reshape(-1)
            sample_bytes(plane.reshape(-1), w + 1, FOR_EIGHT, at, shares, row)


@compiled(error_model="numpy")
def warp_and_displace(
    images: Any, out: Any, jitter: Any, amplitude: Any, weights: Any, keys: Any
) -> None:
    """The affine map, then displacements of uniform noise smoothed by the weights' taps.

    Args:
        images: ``(m, h, w, 3)`` uint8.
        out: ``(m, h, w, 3)`` uint8.
        jitter: As in :func:`warp`.
        amplitude: Of the noise before it is smoothed, in pixels, float32.
        weights: ``(2 r + 1,)`` float32.
        keys: ``(m, 2)`` uint32. Pixel ``p`` takes its noise from the ``p``-th word, the low half
            for the displacement along the row, the high half for that along the column.
    """
    m, h, w = images.shape[:3]
    planes = np.zeros((2, h + 1, w + 1), np.uint64)
    fields = np.empty((2, h, w), np.float32)
    scratch = np.empty(scratch_size(h, w, weights.shape[0]), np.float32)
    buffers = _row_buffers(w)
    for j in range(m):
        a, b = keys[j, 0], keys[j, 1]
        noise_row(
            fields[0].reshape(-1),
            fields[1].reshape(-1),
            U32(0),
            U32(1),
            amplitude,
            a,
            b,
        )
        smooth_field(fields[0], weights, REFLECT, scratch)
        smooth_field(fields[1], weights, REFLECT, scratch)
        inverse = _random_affine(h, w, jitter, a, b)
        _transform(images[j], out[j], planes, inverse, fields, buffers)


@compiled(error_model="numpy")
def warp_and_displace_smoothly(
    images: Any, out: Any, jitter: Any, amplitude: Any, down: Any, across: Any, keys: Any
) -> None:
    """As :func:`warp_and_displace`, with the smoothing of ``cosine_fields``."""
    m, h, w = images.shape[:3]
    planes = np.zeros((2, h + 1, w + 1), np.uint64)
    fields = np.empty((2, h, w), np.float32)
    buffers = _row_buffers(w)
    for j in range(m):
        a, b = keys[j, 0], keys[j, 1]
        cosine_fields(fields, down, across, amplitude, a, b)
        inverse = _random_affine(h, w, jitter, a, b)
        _transform(images[j], out[j], planes, inverse, fields, buffers)


@njit
def _row_buffers(w: Any) -> Any:
    return np.empty((2, w), np.float32), np.empty(w, np.uint32), np.empty((3, w), np.uint32)


@njit
def _transform(image: Any, out: Any, planes: Any, inverse: Any, fields: Any, buffers: Any) -> None:
    h, w = image.shape[:2]
    points, at, shares = buffers
    first, second = planes[0].reshape(-1), planes[1].reshape(-1)
    pack(image, planes[0])
    for y in range(h):
        _affine_row(points, y, inverse)
        locate(points[0], points[1], (h, w), F(0), FOR_EIGHT, at, shares)
        sample_packed(first, w + 1, at, shares, planes[1, y])
    for y in range(h):
        _displaced_row(points, y, fields[0, y], fields[1, y])
        locate(points[0], points[1], (h, w), F(0.5), FOR_ELEVEN, at, shares)
        sample_bytes(second, w + 1, FOR_ELEVEN, at, shares, out[y].reshape(-1))


@njit
def _random_affine(h: Any, w: Any, jitter: Any, a: Any, b: Any) -> Any:
    """The inverse ``(xx, xy, x0, yx, yy, y0)`` of the map that moves three points at random."""
    reach = min(h, w) // 3
    # The published points take the height's half for x, and the width's for y.
    centre_x, centre_y = h // 2, w // 2
    x = np.empty(3, np.float64)
    y = np.empty(3, np.float64)
    for i in range(3):
        right, lower = (reach if i < 2 else -reach), (reach if i < 1 else -reach)
        x[i] = F(F(centre_x + right) + _move(2 * i, jitter, a, b))
        y[i] = F(F(centre_y + lower) + _move(2 * i + 1, jitter, a, b))
    side = 2.0 * reach
    xx, xy = (x[1] - x[2]) / side, (x[0] - x[1]) / side
    yx, yy = (y[1] - y[2]) / side, (y[0] - y[1]) / side
    x0 = x[1] - xx * (centre_x + reach) - xy * (centre_y - reach)
    y0 = y[1] - yx * (centre_x + reach) - yy * (centre_y - reach)
    determinant = xx * yy - xy * yx
    d = 1.0 / determinant if determinant != 0.0 else 0.0
    back_x = (yy * d, -xy * d, (xy * y0 - yy * x0) * d)
    back_y = (-yx * d, xx * d, (yx * x0 - xx * y0) * d)
    return back_x, back_y


@njit
def _move(i: Any, jitter: Any, a: Any, b: Any) -> Any:
    """The ``i``-th uniform number in ``(-jitter, jitter)``, float32."""
    return F(jitter * ((2.0 * word(U32(_JITTER + U32(i)), a, b) + 1.0) * 2.0**-32 - 1.0))


@njit
def _affine_row(points: Any, y: Any, inverse: Any) -> None:
    back_x, back_y = inverse
    x_step, y_step = F(back_x[0]), F(back_y[0])
    x_start, y_start = F(back_x[1] * y + back_x[2]), F(back_y[1] * y + back_y[2])
    xs, ys = points[0], points[1]
    for x in range(xs.shape[0]):
        xs[x] = F(np.int32(x)) * x_step + x_start
        ys[x] = F(np.int32(x)) * y_step + y_start


@njit
def _displaced_row(points: Any, y: Any, along: Any, down: Any) -> None:
    xs, ys = points[0], points[1]
    for x in range(xs.shape[0]):
        xs[x] = F(np.int32(x)) + along[x]
        ys[x] = F(y) + down[x]


# --------------------------------------------------------------------------------------
# Colour images sampled between pixels.
#
# A pixel is one 64-bit number with three lanes of 21 bits, one for each channel, so that a single
# multiplication weighs all three. Weights are whole numbers with the sum 2**13 for pixels of 8
# bits, and 2**10 for pixels of 11 bits, of which the last three are fractions of a grey level.
# --------------------------------------------------------------------------------------

# Bits of the weights, for pixels of 8 and of 11 bits.
FOR_EIGHT = 13
FOR_ELEVEN = 10

_BYTE = U64(0xFF)
_ONES = U64(1 | 1 << 21 | 1 << 42)
_HALF = U64(int(_ONES) << 9)
_ELEVEN_BITS = U64(int(_ONES) * 0x7FF)


@njit
def pack(image: Any, plane: Any) -> None:
    """An image ``(h, w, 3)`` into ``(h + 1, w + 1)`` uint64; the last row and column are unused."""
    h, w = image.shape[:2]
    for y in range(h):
        source, row = image[y].reshape(-1), plane[y]
        for x in range(w):
            row[x] = (
                U64(source[3 * x])
                | U64(source[3 * x + 1]) << U64(21)
                | U64(source[3 * x + 2]) << U64(42)
            )


@njit(inline="always")
def fold(s: Any, n: Any, offset: Any) -> Any:
    """The point in ``[0, n - 1]`` that ``s`` is mirrored to.

    With an offset of 0 the mirrors stand on the outermost pixels (reflect-101 in OpenCV), with
    1/2 on their outer edges (reflect in scipy), where the outermost value holds. What is 255
    periods away or not a number is somewhere in the image all the same.
    """
    period = F(F(2) * (F(n - 1) + F(2) * offset))
    limit = F(F(255) * period)
    s = F(s + offset)
    s = s if s > -limit else F(-limit)
    s = s if s < limit else limit
    # Cutting a positive number is a floor that vectorises; near a whole number of periods it may
    # be one too low or too high, which mirroring makes good.
    periods = F(np.int32(F(s * F(F(1) / period)) + F(256))) - F(256)
    rest = F(s - F(periods * period))
    back = F(period - rest)
    rest = F(abs(rest if rest < back else back) - offset)
    rest = rest if rest > F(0) else F(0)
    return rest if rest < F(n - 1) else F(n - 1)


@njit
def locate(xs: Any, ys: Any, shape: Any, offset: Any, bits: Any, at: Any, shares: Any) -> None:
    """For every point its upper left pixel in a packed plane, and the other three's weights.

    Args:
        xs: ``(w,)`` float32, any.
        ys: ``(w,)`` float32, any.
        shape: Of the image, ``(h, w)``.
        offset: 0 or 1/2, float32; see :func:`fold`.
        bits: The four weights have the sum ``2**bits``.
        at: ``(w,)`` uint32, to be written: indices into the flat plane of ``w + 1`` columns.
        shares: ``(3, w)`` uint32, to be written: right, below, and below to the right.
    """
    h, w = shape
    scale = F(1 << bits)
    bits = np.int32(bits)
    half = np.int32(1 << (bits - 1))
    stride = np.int32(w + 1)
    right, below, beyond = shares[0], shares[1], shares[2]
    for j in range(xs.shape[0]):
        x, y = fold(xs[j], w, offset), fold(ys[j], h, offset)
        column, row = np.int32(x), np.int32(y)
        at[j] = U32(np.int32(np.int32(row * stride) + column))
        u = np.int32(F(F(x - F(column)) * scale) + F(0.5))
        v = np.int32(F(F(y - F(row)) * scale) + F(0.5))
        both = np.int32(np.int32(np.int32(u * v) + half) >> bits)
        right[j] = U32(np.int32(u - both))
        below[j] = U32(np.int32(v - both))
        beyond[j] = U32(both)


@njit(inline="always")
def _weigh(
    plane: Any, stride: Any, total: Any, place: Any, right: Any, below: Any, beyond: Any
) -> Any:
    p = U64(place)
    r, b, d = U64(right), U64(below), U64(beyond)
    left = U64(U64(U64(total - r) - b) - d)
    q = U64(p + stride)
    return U64(
        U64(U64(plane[p] * left) + U64(plane[U64(p + U64(1))] * r))
        + U64(U64(plane[q] * b) + U64(plane[U64(q + U64(1))] * d))
    )


@njit
def sample_packed(plane: Any, stride: Any, at: Any, shares: Any, out: Any) -> None:
    """Pixels of 8 bits to pixels of 11 bits, rounded."""
    right, below, beyond = shares[0], shares[1], shares[2]
    step, total = U64(stride), U64(1 << FOR_EIGHT)
    for j in range(at.shape[0]):
        lanes = _weigh(plane, step, total, at[j], right[j], below[j], beyond[j])
        out[j] = U64(U64(lanes + _HALF) >> U64(10)) & _ELEVEN_BITS


@njit
def sample_bytes(plane: Any, stride: Any, bits: Any, at: Any, shares: Any, out: Any) -> None:
    """Pixels of 8 or 11 bits to channels ``(3 w,)`` uint8, cut to whole grey levels."""
    right, below, beyond = shares[0], shares[1], shares[2]
    step, total = U64(stride), U64(1 << bits)
    for j in range(at.shape[0]):
        lanes = _weigh(plane, step, total, at[j], right[j], below[j], beyond[j])
        out[3 * j] = np.uint8(U64(lanes >> U64(13)) & _BYTE)
        out[3 * j + 1] = np.uint8(U64(lanes >> U64(34)) & _BYTE)
        out[3 * j + 2] = np.uint8(U64(lanes >> U64(55)) & _BYTE)
