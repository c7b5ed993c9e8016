"""Weighted sums in 16-bit fixed point. Imports numba: import in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from shiftcal.corruptions.kernels.blur_plans import RUN
from shiftcal.corruptions.kernels.random_kernels import inlined, inner

# --------------------------------------------------------------------------------------
# Weighted sums in 16-bit fixed point, sixteen values at a time.
#
# A product of two 16-bit numbers of which only the upper half is kept is one instruction for a
# whole
# register, while the same written with wider integers is four; numba has no word for it, so it is
# said in the compiler's own language. The result is an integer, the same on every machine.
# --------------------------------------------------------------------------------------

U16 = np.uint16


@intrinsic
def upper_half(_typing: Any, _a: Any, _b: Any) -> Any:
    """``a * b >> 16`` of two uint16."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        half, word = ir.IntType(16), ir.IntType(32)
        kind = ir.FunctionType(half, [half, half, word])
        product = builder.module.declare_intrinsic("llvm.umul.fix", [half], kind)
        return builder.call(product, [*args, ir.Constant(word, 16)])

    return types.uint16(types.uint16, types.uint16), generate


@inner()
def weighted_sum(out: Any, source: Any, centre: int, step: int, weights: Any, bias: Any) -> None:
    """Correlate a line with a symmetric kernel.

    ``out[i] = bias + sum_k (source[c + i - k step] + source[c + i + k step]) weights[k] >> 16``,
    each term cut by itself; ``k`` runs from 0, so that the centre counts twice. Sums of two
    values and the result must fit 16 bits.

    Args:
        out: ``(n,)`` uint16.
        source: Flat uint16.
        centre: Where the value for ``out[0]`` is in ``source``.
        step: The distance between neighbours.
        weights: ``(r + 1,)`` uint16.
        bias: What is added, uint16.
    """
    radius = len(weights) - 1
    first = (radius - 1) % 3 + 1 if radius > 0 else 0
    if first == 0:
        _centre(out, source, centre, weights, bias)
    elif first == 1:
        _centre_and_one(out, source, centre, step, weights, bias)
    elif first == 2:
        _centre_and_two(out, source, centre, step, weights, bias)
    else:
        _centre_and_three(out, source, centre, step, weights, bias)
    for k in range(first + 1, radius + 1, 3):
        _three_more(out, source, centre, k * step, step, weights[k : k + 3])


# No loop below reads from more than seven places: beyond eight the compiler gives up proving that
# they do not overlap what is written, and works on one value at a time.


@inlined
def _line(source: Any, start: Any, n: Any) -> Any:
    return source[start : start + n]


@inner()
def _centre(out: Any, source: Any, c: Any, weights: Any, bias: Any) -> None:
    n = len(out)
    x, w0 = _line(source, c, n), weights[0]
    for i in range(n):
        out[i] = U16(bias + upper_half(U16(x[i] + x[i]), w0))


@inner()
def _centre_and_one(out: Any, source: Any, c: Any, step: Any, weights: Any, bias: Any) -> None:
    n = len(out)
    x, w0, w1 = _line(source, c, n), weights[0], weights[1]
    a1, b1 = _line(source, c - step, n), _line(source, c + step, n)
    for i in range(n):
        out[i] = U16(bias + upper_half(U16(x[i] + x[i]), w0) + upper_half(U16(a1[i] + b1[i]), w1))


@inner()
def _centre_and_two(out: Any, source: Any, c: Any, step: Any, weights: Any, bias: Any) -> None:
    n = len(out)
    x, w0, w1, w2 = _line(source, c, n), weights[0], weights[1], weights[2]
    a1, b1 = _line(source, c - step, n), _line(source, c + step, n)
    a2, b2 = _line(source, c - 2 * step, n), _line(source, c + 2 * step, n)
    for i in range(n):
        out[i] = U16(
            bias
            + upper_half(U16(x[i] + x[i]), w0)
            + upper_half(U16(a1[i] + b1[i]), w1)
            + upper_half(U16(a2[i] + b2[i]), w2)
        )


@inner()
def _centre_and_three(out: Any, source: Any, c: Any, step: Any, weights: Any, bias: Any) -> None:
    n = len(out)
    x, w0, w1, w2, w3 = _line(source, c, n), weights[0], weights[1], weights[2], weights[3]
    a1, b1 = _line(source, c - step, n), _line(source, c + step, n)
    a2, b2 = _line(source, c - 2 * step, n), _line(source, c + 2 * step, n)
    a3, b3 = _line(source, c - 3 * step, n), _line(source, c + 3 * step, n)
    for i in range(n):
        out[i] = U16(
            bias
            + upper_half(U16(x[i] + x[i]), w0)
            + upper_half(U16(a1[i] + b1[i]), w1)
            + upper_half(U16(a2[i] + b2[i]), w2)
            + upper_half(U16(a3[i] + b3[i]), w3)
        )


@inner()
def _three_more(out: Any, source: Any, c: Any, far: Any, step: Any, weights: Any) -> None:
    n = len(out)
    w1, w2, w3 = weights[0], weights[1], weights[2]
    a1, b1 = _line(source, c - far, n), _line(source, c + far, n)
    a2, b2 = _line(source, c - far - step, n), _line(source, c + far + step, n)
    a3, b3 = _line(source, c - far - 2 * step, n), _line(source, c + far + 2 * step, n)
    for i in range(n):
        out[i] = U16(
            out[i]
            + upper_half(U16(a1[i] + b1[i]), w1)
            + upper_half(U16(a2[i] + b2[i]), w2)
            + upper_half(U16(a3[i] + b3[i]), w3)
        )


# --------------------------------------------------------------------------------------
# Sums of many lines of one array, modulo ``2**16``.
# --------------------------------------------------------------------------------------

ADD, SUBTRACT = U16(1), U16(0xFFFF)


@inner()
def sum_pairs(out: Any, source: Any, first: Any, second: Any, sign: Any) -> None:
    """The sum of ``source[first[k] + i] + sign * source[second[k] + i]`` over ``k``.

    Args:
        out: ``(n,)`` uint16, the result.
        source: Flat uint16.
        first: ``(k,)`` int64, where the lines begin; at least one.
        second: ``(k,)`` int64, where the others begin.
        sign: ``ADD`` or ``SUBTRACT``.
    """
    at_once = (len(first) - 1) % 3 + 1
    if at_once == 1:
        _one(out, source, first, second, sign)
    elif at_once == 2:
        _two(out, source, first, second, sign)
    else:
        _three(out, source, first, second, sign)
    for k in range(at_once, len(first), 3):
        _three_more_of_line(out, source, first[k : k + 3], second[k : k + 3], sign)


@inner()
def fill_margins(line: Any, places: Any, margin: Any) -> None:
    """Fill the first and the last ``margin`` values of a row from the ones between.

    Args:
        line: ``(n,)`` uint16.
        places: ``(n,)`` int64, where the values come from.
        margin: How many at each end.
    """
    last = len(line) - 1
    for i in range(margin):
        line[i] = line[np.uintp(places[i])]
        line[last - i] = line[np.uintp(places[last - i])]


@inner()
def _one(out: Any, source: Any, first: Any, second: Any, sign: Any) -> None:
    n = len(out)
    a, b = _line(source, first[0], n), _line(source, second[0], n)
    for i in range(n):
        out[i] = U16(a[i] + U16(sign * b[i]))


@inner()
def _two(out: Any, source: Any, first: Any, second: Any, sign: Any) -> None:
    n = len(out)
    a, b = _line(source, first[0], n), _line(source, second[0], n)
    c, d = _line(source, first[1], n), _line(source, second[1], n)
    for i in range(n):
        out[i] = U16(U16(a[i] + c[i]) + U16(sign * U16(b[i] + d[i])))


@inner()
def _three(out: Any, source: Any, first: Any, second: Any, sign: Any) -> None:
    n = len(out)
    a, b = _line(source, first[0], n), _line(source, second[0], n)
    c, d = _line(source, first[1], n), _line(source, second[1], n)
    e, f = _line(source, first[2], n), _line(source, second[2], n)
    for i in range(n):
        out[i] = U16(U16(a[i] + c[i] + e[i]) + U16(sign * U16(b[i] + d[i] + f[i])))


@inner()
def _three_more_of_line(out: Any, source: Any, first: Any, second: Any, sign: Any) -> None:
    n = len(out)
    a, b = _line(source, first[0], n), _line(source, second[0], n)
    c, d = _line(source, first[1], n), _line(source, second[1], n)
    e, f = _line(source, first[2], n), _line(source, second[2], n)
    for i in range(n):
        out[i] = U16(U16(out[i] + a[i] + c[i] + e[i]) + U16(sign * U16(b[i] + d[i] + f[i])))


# --------------------------------------------------------------------------------------
# Smoothing of a plane by columns, then by rows, in 16-bit fixed point.
#
# A plane is flat uint16 with the three channels of a pixel side by side, in multiples of 1/128 of a
# grey level. Values are taken along the flat plane in long runs, over the ends of rows.
# --------------------------------------------------------------------------------------

BAND = 16  # rows between the two directions


@inner()
def load(plane: Any, image: Any, rows: Any) -> None:
    """Put an image's rows into a plane, in the order of ``rows``.

    Args:
        plane: Flat uint16, room for ``len(rows) * s``.
        image: ``(h, s)`` uint8.
        rows: ``(h + 2 r,)`` row indices.
    """
    width = image.shape[1]
    for y in range(len(rows)):
        line, x = plane[y * width : (y + 1) * width], image[rows[y]]
        for i in range(width):
            line[i] = U16(U16(x[i]) << U16(7))


@inner()
def smooth_columns(
    middle: Any, plane: Any, weights: Any, bias: Any, places: Any, sums: Any
) -> None:
    """Smooth a plane of ``h + 2 r`` rows vertically, and pad its rows.

    Args:
        middle: ``(h, 3 (w + 2 r))`` uint16, the result.
        plane: Flat uint16, ``(h + 2 r) * 3 w`` values.
        weights: ``(r + 1,)`` uint16.
        bias: uint16.
        places: ``(3 (w + 2 r),)``, where the values of a padded row come from.
        sums: Flat uint16 to work in, room for ``max(3 w, RUN)``.
    """
    height, radius = len(middle), len(weights) - 1
    width = len(places) - 6 * radius
    group = max(1, RUN // width)
    for top in range(0, height, group):
        rows = min(group, height - top)
        line = sums[: rows * width]
        weighted_sum(line, plane, (top + radius) * width, width, weights, bias)
        for y in range(rows):
            _halve(middle[top + y, 3 * radius : 3 * radius + width], line[y * width :])
            fill_margins(middle[top + y], places, 3 * radius)


@inner()
def _halve(out: Any, sums: Any) -> None:
    for i in range(len(out)):
        out[i] = U16(sums[i] >> U16(1))


@inner()
def smooth_rows(image: Any, middle: Any, weights: Any, bias: Any, sums: Any) -> None:
    """Smooth padded rows horizontally, and cut the result to whole grey levels.

    Args:
        image: ``(h, 3 w)`` uint8, the result.
        middle: ``(h, 3 (w + 2 r))`` uint16.
        weights: ``(r + 1,)`` uint16.
        bias: uint16.
        sums: Flat uint16 to work in, room for ``max(3 (w + 2 r), RUN)``.
    """
    height, width = image.shape
    padded = middle.shape[1]
    flat = middle.reshape(middle.size)
    edge = 3 * (len(weights) - 1)
    group = max(1, RUN // padded)
    for top in range(0, height, group):
        rows = min(group, height - top)
        line = sums[: rows * padded - 2 * edge]
        weighted_sum(line, flat, top * padded + edge, 3, weights, bias)
        for y in range(rows):
            _cut(image[top + y], line[y * padded : y * padded + width])


@inner()
def _cut(out: Any, sums: Any) -> None:
    for i in range(len(out)):
        out[i] = np.uint8(sums[i] >> U16(8))


@inner()
def smooth(image: Any, plane: Any, plan: Any, middle: Any, sums: Any) -> None:
    """Smooth a padded plane into an image, some rows at a time so that they stay in the cache.

    Args:
        image: ``(h, 3 w)`` uint8, the result.
        plane: Flat uint16, ``(h + 2 r) * 3 w`` values.
        plan: A ``Smoothing``.
        middle: ``(b, 3 (w + 2 r))`` uint16 to work in, for ``b`` rows at a time.
        sums: Flat uint16 to work in, room for ``max(3 (w + 2 r), RUN)``.
    """
    height, width = image.shape
    band = len(middle)
    for top in range(0, height, band):
        rows = min(band, height - top)
        part = middle[:rows]
        smooth_columns(part, plane[top * width :], plan.weights, plan.biases[0], plan.places, sums)
        smooth_rows(image[top : top + rows], part, plan.weights, plan.biases[1], sums)


# --------------------------------------------------------------------------------------
# Symmetric kernels of three by three pixels, by the differences from the centre.
#
# ``x + edge (sum of the 4 nearest - 4 x) + corner (sum of the 4 diagonal ones - 4 x)``: where a
# kernel is all but a single point, the sign of a very small difference decides between two grey
# levels, and here it is exact.
# --------------------------------------------------------------------------------------

I16, I32 = np.int16, np.int32
SHIFT = I32(22)  # bits of a weight behind the point: a sum of differences still fits 32 bits
_SLACK = I32(1 << 10)  # 2**-12 of a level: more than the weights' rounding can take from a sum


@inner()
def frame(plane: Any, image: Any, rows: Any, columns: Any) -> None:
    """Copy an image with one more pixel on each side.

    Args:
        plane: ``(h + 2, 3 w + 6)`` uint8, the result.
        image: ``(h, 3 w)`` uint8.
        rows: ``(h + 2,)`` row indices.
        columns: ``(w + 2,)`` column indices.
    """
    width = image.shape[1]
    left, right = 3 * columns[0], 3 * columns[-1]
    for y in range(len(rows)):
        line, x = plane[y], image[rows[y]]
        inner = line[3 : 3 + width]
        for i in range(width):
            inner[i] = x[i]
        for c in range(3):
            line[c] = x[left + c]
            line[3 + width + c] = x[right + c]


@inner()
def weigh_neighbours(image: Any, plane: Any, edge: Any, corner: Any, work: Any) -> None:
    """Apply a kernel of sum 1, and cut the result to whole grey levels.

    Args:
        image: ``(h, 3 w)`` uint8, the result.
        plane: ``(h + 2, 3 w + 6)`` uint8.
        edge: The weight of a nearest neighbour in units of ``2**-SHIFT``, int32.
        corner: That of a diagonal one.
        work: ``(3, n)`` int16 to work in, with room for at least a row of the plane.
    """
    height, width = image.shape
    padded = plane.shape[1]
    flat = plane.reshape(plane.size)
    group = max(1, work.shape[1] // padded)
    for top in range(0, height, group):
        rows = min(group, height - top)
        n = rows * padded - 6
        near, far, result = work[0, :n], work[1, :n], work[2, :n]
        part = flat[top * padded :]
        _differences(near, far, part, padded)
        _weigh(result, near, far, edge, corner)
        for y in range(rows):
            out, line = image[top + y], result[y * padded : y * padded + width]
            x = plane[top + y + 1, 3 : 3 + width]
            for i in range(width):
                out[i] = np.uint8(x[i] + line[i])


@inner()
def _differences(near: Any, far: Any, plane: Any, padded: Any) -> None:
    n = len(near)
    above, line = plane[: n + 6], plane[padded : padded + n + 6]
    below = plane[2 * padded : 2 * padded + n + 6]
    for i in range(n):
        four = I16(4 * I16(line[i + 3]))
        near[i] = I16(I16(above[i + 3]) + line[i] + line[i + 6] + below[i + 3] - four)
        far[i] = I16(I16(above[i]) + above[i + 6] + below[i] + below[i + 6] - four)


@inner()
def _weigh(result: Any, near: Any, far: Any, edge: Any, corner: Any) -> None:
    for i in range(len(result)):
        change = I32(I32(I32(near[i]) * edge) + I32(I32(far[i]) * corner) + _SLACK)
        result[i] = I16(I32(change) >> SHIFT)


# --------------------------------------------------------------------------------------
# Planes with a frame of two pixels around them.
#
# A plane of ``h`` rows and ``w`` columns is a line of ``(h + 4) (w + 4)`` values. Loops run over
# all
# of it, frames between the rows included, at one go: at 32 pixels a loop for each row would cost
# more than the work. What then stands in the frame has no meaning until it is written again.
# --------------------------------------------------------------------------------------

FRAME = 2
Z = np.uint64  # an unsigned index is not looked at for counting from the end
ONE = Z(1)


def framed_size(height: int, width: int) -> int:
    """How many values a framed plane has."""
    return (height + 2 * FRAME) * (width + 2 * FRAME)


@njit(inline="always")
def span(h: Any, w: Any) -> Any:
    """``(first, count, stride)``: where the pixels begin, how far they reach, a row's length."""
    stride = w + 2 * FRAME
    return Z(FRAME * stride + FRAME), (h - 1) * stride + w, Z(stride)


@njit
def mirror_frame(plane: Any, h: Any, w: Any, step: Any) -> None:
    """Set the pixels next to the border: to the border's (``step`` 0) or to its neighbours' (1)."""
    stride = w + 2 * FRAME
    left, right = FRAME * stride + FRAME, FRAME * stride + FRAME + w - 1
    for _ in range(h):
        plane[left - 1] = plane[left + step]
        plane[right + 1] = plane[right - step]
        left += stride
        right += stride
    top, bottom = FRAME * stride, (FRAME + h - 1) * stride
    for i in range(stride):
        plane[top - stride + i] = plane[top + step * stride + i]
        plane[bottom + stride + i] = plane[bottom - step * stride + i]


@njit
def clear_frame(plane: Any, h: Any, w: Any) -> None:
    """Set the whole frame to 0."""
    stride = w + 2 * FRAME
    for i in range(FRAME * stride):
        plane[i] = 0
        plane[(FRAME + h) * stride + i] = 0
    for y in range(FRAME, FRAME + h):
        for i in range(FRAME):
            plane[y * stride + i] = 0
            plane[(y + 1) * stride - 1 - i] = 0
