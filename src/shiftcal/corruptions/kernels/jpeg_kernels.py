"""Compiled JPEG. Importing this file imports numba: import it in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from shiftcal.corruptions.kernels.random_kernels import add, inlined, inner, mul, shl, shr, sub
from shiftcal.numerics.jit import compiled

# --------------------------------------------------------------------------------------
# The discrete cosine transform of 8 values in whole numbers, forward and back.
#
# The factorisation of Loeffler, Ligtenberg and Moschytz (1989) with the constants at 13 binary
# places: what the reference codec of JPEG calls the accurate integer method. A transform of a block
# is two passes; between them two more binary places are kept. Results are ``sqrt(8)`` times those
# of
# the orthonormal transform in each pass.
# --------------------------------------------------------------------------------------

PLACES = 13  # of the constants below
KEPT = 2  # of the values between the passes


@inlined
def rounded(value: Any, places: Any) -> Any:
    """``value`` without its last binary ``places``, half a unit rounded up."""
    return shr(add(value, 1 << (places - 1)), places)


@inlined
def _turn(low: Any, high: Any) -> Any:
    """Two values turned by 3 pi / 8 and stretched by ``sqrt(2)``."""
    both = mul(add(low, high), 4433)
    return add(both, mul(low, 6270)), sub(both, mul(high, 15137))


@inlined
def _odd(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The four odd values, in either direction: the matrix is its own transpose."""
    shared = mul(add(add(a, c), add(b, d)), 9633)
    far0 = sub(shared, mul(add(a, c), 16069))
    far1 = sub(shared, mul(add(b, d), 3196))
    near0 = mul(add(a, d), -7373)
    near1 = mul(add(b, c), -20995)
    return (
        add(add(mul(a, 2446), near0), far0),
        add(add(mul(b, 16819), near1), far1),
        add(add(mul(c, 25172), near1), far0),
        add(add(mul(d, 12299), near0), far1),
    )


@inlined
def forward(x: Any) -> Any:
    """Eight values to coefficients with ``PLACES`` more binary places."""
    e0, e1, e2, e3 = add(x[0], x[7]), add(x[1], x[6]), add(x[2], x[5]), add(x[3], x[4])
    o0, o1, o2, o3 = sub(x[0], x[7]), sub(x[1], x[6]), sub(x[2], x[5]), sub(x[3], x[4])
    s0, s1 = add(e0, e3), add(e1, e2)
    c0, c4 = shl(add(s0, s1), PLACES), shl(sub(s0, s1), PLACES)
    c2, c6 = _turn(sub(e0, e3), sub(e1, e2))
    c7, c5, c3, c1 = _odd(o3, o2, o1, o0)
    return c0, c1, c2, c3, c4, c5, c6, c7


@inlined
def backward(c: Any) -> Any:
    """Eight coefficients to values with ``PLACES`` more binary places."""
    up, down = _turn(c[2], c[6])
    s0, s1 = shl(add(c[0], c[4]), PLACES), shl(sub(c[0], c[4]), PLACES)
    e0, e1, e2, e3 = add(s0, up), add(s1, down), sub(s1, down), sub(s0, up)
    o3, o2, o1, o0 = _odd(c[7], c[5], c[3], c[1])
    first = add(e0, o0), add(e1, o1), add(e2, o2), add(e3, o3)
    return (*first, sub(e3, o3), sub(e2, o2), sub(e1, o1), sub(e0, o0))


# --------------------------------------------------------------------------------------
# Rows and columns of a block of 8 x 8 values exchanged, eight values at a time.
#
# numba turns the plain double loop into single loads and stores, six times slower than this. The
# few vector instructions written out here are LLVM's own, which it translates for every processor.
# --------------------------------------------------------------------------------------

_SIDE = 8
# Lanes of two rows taken in turn. Done three times to rows i and i + 4, this is the transpose.
_FIRST_HALVES = (0, 8, 1, 9, 2, 10, 3, 11)
_SECOND_HALVES = (4, 12, 5, 13, 6, 14, 7, 15)


@intrinsic
def transpose_block(
    context: Any,  # noqa: ARG001
    out: Any,
    out_start: Any,  # noqa: ARG001
    out_stride: Any,  # noqa: ARG001
    values: Any,
    start: Any,  # noqa: ARG001
    stride: Any,  # noqa: ARG001
) -> Any:
    """Write ``values[start + stride * i + j]`` to ``out[out_start + out_stride * j + i]``.

    Both are flat contiguous arrays of one integer type; ``i`` and ``j`` go from 0 to 7. They may
    be the same array only where the blocks are the same too.
    """
    place = types.intp
    return types.void(out, place, place, values, place, place), _transpose_code


def _transpose_code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    out, out_start, out_stride, values, start, stride = args
    rows = [
        builder.load(pointer, align=1)
        for pointer in _rows(context, builder, signature.args[3], (values, start, stride))
    ]
    for _ in range(3):
        rows = [
            builder.shuffle_vector(rows[i], rows[i + 4], _lanes(order))
            for i in range(_SIDE // 2)
            for order in (_FIRST_HALVES, _SECOND_HALVES)
        ]
    pointers = _rows(context, builder, signature.args[0], (out, out_start, out_stride))
    for row, pointer in zip(rows, pointers, strict=True):
        builder.store(row, pointer, align=1)
    return context.get_dummy_value()


def _rows(context: Any, builder: Any, kind: Any, place: tuple[Any, Any, Any]) -> list[Any]:
    """Pointers to the eight rows of a block, each a vector of eight values."""
    array, start, stride = place
    data = context.make_array(kind)(context, builder, array).data
    row = ir.VectorType(context.get_data_type(kind.dtype), _SIDE).as_pointer()
    indices = [
        builder.add(start, builder.mul(stride, ir.Constant(stride.type, i))) for i in range(_SIDE)
    ]
    return [builder.bitcast(builder.gep(data, [index]), row) for index in indices]


def _lanes(order: tuple[int, ...]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), _SIDE), list(order))


# --------------------------------------------------------------------------------------
# What JPEG does to blocks of 8 x 8 values: transform, rounding to multiples, transform back.
#
# Eight blocks go together, as 64 columns side by side in flat buffers of 8 rows, so that every loop
# runs over 64 neighbouring values. Rows are transformed as columns of the transposed blocks.
# --------------------------------------------------------------------------------------

I = np.int32  # noqa: E741
TOGETHER = 8
COLUMNS = 8 * TOGETHER


@inlined
def _first_forward(samples: Any, out: Any) -> None:
    for i in range(COLUMNS):
        _put(out, i, forward(_column(samples, i)), PLACES - KEPT)
        # 128 is taken off every sample: only their sum changes.
        out[i] = sub(out[i], (8 * 128) << KEPT)


@inlined
def _middle(values: Any, out: Any, tables: Any) -> None:
    """The second pass forward, quantisation, the first pass back: all of them by column."""
    for i in range(COLUMNS):
        c = forward(_column(values, i))
        multiples = (
            _quantised(c[0], tables, i),
            _quantised(c[1], tables, COLUMNS + i),
            _quantised(c[2], tables, 2 * COLUMNS + i),
            _quantised(c[3], tables, 3 * COLUMNS + i),
            _quantised(c[4], tables, 4 * COLUMNS + i),
            _quantised(c[5], tables, 5 * COLUMNS + i),
            _quantised(c[6], tables, 6 * COLUMNS + i),
            _quantised(c[7], tables, 7 * COLUMNS + i),
        )
        _put(out, i, backward(multiples), PLACES - KEPT)


@inlined
def _quantised(coefficient: Any, tables: Any, i: Any) -> Any:
    """The multiple of the step nearest to an eighth of a coefficient, halves away from zero.

    Away from zero is up for a number that is one less if it is below zero.
    """
    value = rounded(coefficient, PLACES + KEPT)
    product = mul(add(value, shr(value, 31)), tables[1, i])
    return mul(shr(add(product, tables[2, i]), tables[3, i]), tables[0, i])


@inlined
def _last_backward(values: Any, samples: Any) -> None:
    for i in range(COLUMNS):
        y = backward(_column(values, i))
        samples[i] = _sample(y[0])
        samples[COLUMNS + i] = _sample(y[1])
        samples[2 * COLUMNS + i] = _sample(y[2])
        samples[3 * COLUMNS + i] = _sample(y[3])
        samples[4 * COLUMNS + i] = _sample(y[4])
        samples[5 * COLUMNS + i] = _sample(y[5])
        samples[6 * COLUMNS + i] = _sample(y[6])
        samples[7 * COLUMNS + i] = _sample(y[7])


@inlined
def _sample(value: Any) -> Any:
    level = add(rounded(value, PLACES + KEPT + 3), 128)
    return min(max(level, I(0)), I(255))


@inlined
def _column(values: Any, i: Any) -> Any:
    return (
        I(values[i]),
        I(values[COLUMNS + i]),
        I(values[2 * COLUMNS + i]),
        I(values[3 * COLUMNS + i]),
        I(values[4 * COLUMNS + i]),
        I(values[5 * COLUMNS + i]),
        I(values[6 * COLUMNS + i]),
        I(values[7 * COLUMNS + i]),
    )


@inlined
def _put(out: Any, i: Any, values: Any, places: Any) -> None:
    out[i] = rounded(values[0], places)
    out[COLUMNS + i] = rounded(values[1], places)
    out[2 * COLUMNS + i] = rounded(values[2], places)
    out[3 * COLUMNS + i] = rounded(values[3], places)
    out[4 * COLUMNS + i] = rounded(values[4], places)
    out[5 * COLUMNS + i] = rounded(values[5], places)
    out[6 * COLUMNS + i] = rounded(values[6], places)
    out[7 * COLUMNS + i] = rounded(values[7], places)


@inner()
def code_blocks(
    planes: Any, starts: Any, stride: Any, tables: Any, samples: Any, a: Any, b: Any
) -> None:
    """Put every block of a plane through the transform, quantisation, and back, in place.

    Args:
        planes: Flat uint8.
        starts: ``(blocks,)`` where each block's first value is.
        stride: From one row of a block to the next.
        tables: ``(4, 512)`` int32 for the 8 rows of 64 columns: the step, and multiplier,
            summand and shift that divide by 8 steps and round.
        samples: ``(512,)`` uint8, to work in.
        a: ``(512,)`` int16, to work in.
        b: ``(512,)`` int16, to work in.
    """
    for first in range(0, starts.shape[0], TOGETHER):
        here = min(TOGETHER, starts.shape[0] - first)
        for j in range(here):
            transpose_block(samples, 8 * j, COLUMNS, planes, starts[first + j], stride)
        _first_forward(samples, a)
        for j in range(TOGETHER):
            transpose_block(b, 8 * j, COLUMNS, a, 8 * j, COLUMNS)
        _middle(b, a, tables)
        for j in range(TOGETHER):
            transpose_block(b, 8 * j, COLUMNS, a, 8 * j, COLUMNS)
        _last_backward(b, samples)
        for j in range(here):
            transpose_block(planes, starts[first + j], stride, samples, 8 * j, COLUMNS)


# --------------------------------------------------------------------------------------
# What JPEG does to colours: brightness at full resolution, two colour differences at half of it.
#
# All in whole numbers of 16 binary places, as the reference codec has it. The planes of an image
# lie
# in one flat uint8 array: brightness in rows of ``stride`` values, then, from ``first`` on, rows of
# both colour differences side by side, ``half_stride`` values each. All are padded to whole blocks
# of
# 8 x 8. ``shape`` is the tuple ``(height, width, stride, half_stride, first)``.
# --------------------------------------------------------------------------------------

_HALF = 1 << 15
_CENTRE = (128 << 16) + (1 << 15) - 1  # so that a half is rounded down


@inner()
def to_planes(image: Any, planes: Any, shape: Any, rows: Any) -> None:
    """An image to its planes.

    Beyond the right edge the last column goes on at full resolution; beyond the bottom the last
    row of each plane does, at the plane's own resolution.

    Args:
        image: ``(height, 3 * width)`` uint8.
        planes: Flat uint8, to be written in full.
        shape: See the top of this file.
        rows: ``(2, 4 * half_stride)`` uint8, to work in.
    """
    height, width, stride, half_stride, first = shape
    for top in range(0, height, 2):
        for part in range(2):
            row = min(top + part, height - 1)
            y = planes[row * stride : (row + 1) * stride]
            cb, cr = rows[part, : 2 * half_stride], rows[part, 2 * half_stride :]
            _split_row(image[row], width, y, cb, cr)
            y[width:] = y[width - 1]
            cb[width:] = cb[width - 1]
            cr[width:] = cr[width - 1]
        at = first + top * half_stride
        _halve(rows[0], rows[1], planes[at : at + 2 * half_stride])
    _extend(planes[:first], height, stride)
    _extend(planes[first:], (height + 1) // 2, 2 * half_stride)


@inlined
def _split_row(pixels: Any, width: Any, y: Any, cb: Any, cr: Any) -> None:
    """A row of red, green, blue to brightness and the two colour differences."""
    for x in range(width):
        r, g, b = I(pixels[3 * x]), I(pixels[3 * x + 1]), I(pixels[3 * x + 2])
        light = add(mul(r, 19595), mul(g, 38470))
        y[x] = shr(add(add(light, mul(b, 7471)), _HALF), 16)
        blue = sub(shl(b, 15), mul(r, 11059))
        cb[x] = shr(add(sub(blue, mul(g, 21709)), _CENTRE), 16)
        red = sub(shl(r, 15), mul(g, 27439))
        cr[x] = shr(add(sub(red, mul(b, 5329)), _CENTRE), 16)


@inlined
def _halve(upper: Any, lower: Any, out: Any) -> None:
    """Means of 2 x 2 values: halves are rounded down in even columns, and up in odd ones."""
    for x in range(out.shape[0]):
        a = add(upper[2 * x], upper[2 * x + 1])
        b = add(lower[2 * x], lower[2 * x + 1])
        out[x] = shr(add(add(a, b), 1 + (x & 1)), 2)


@inlined
def _extend(plane: Any, height: Any, stride: Any) -> None:
    """Repeat the last row of a plane to its end."""
    for at in range(height * stride, plane.shape[0]):
        plane[at] = plane[at - stride]


@inner()
def from_planes(planes: Any, image: Any, shape: Any, rows: Any, sums: Any) -> None:
    """The planes back to an image.

    Args:
        planes: Flat uint8.
        image: ``(height, 3 * width)`` uint8, to be written in full.
        shape: See the top of this file.
        rows: ``(2, 4 * half_stride)`` uint8, to work in.
        sums: ``(2 * half_stride + 2,)`` int16, to work in.
    """
    height, width, stride, half_stride, first = shape
    double, half_width, last = 2 * half_stride, (width + 1) // 2, (height + 1) // 2 - 1
    for row in range(height):
        near = row // 2
        far = min(max(near + 2 * (row % 2) - 1, 0), last)
        a, b = first + near * double, first + far * double
        _double(planes[a : a + double], planes[b : b + double], sums, rows[0])
        cb, cr = rows[0, :double], rows[0, double:]
        _double_edges(sums[1:], half_width, cb)
        _double_edges(sums[1 + half_stride :], half_width, cr)
        _join_row(planes[row * stride : row * stride + width], cb, cr, image[row])


@inlined
def _double(near: Any, far: Any, sums: Any, out: Any) -> None:
    """A row of twice as many values: 9/16, 3/16, 3/16 and 1/16 of the four around each.

    Half a level is rounded up in even columns, and down in odd ones.
    """
    for x in range(near.shape[0]):
        sums[x + 1] = add(mul(np.int16(near[x]), 3), far[x])
    for x in range(near.shape[0]):
        three = mul(sums[x + 1], 3)
        out[2 * x] = shr(add(add(three, sums[x]), 8), 4)
        out[2 * x + 1] = shr(add(add(three, sums[x + 2]), 7), 4)


@inlined
def _double_edges(sums: Any, n: Any, out: Any) -> None:
    """The first and the last of the doubled values, beyond which nothing is known."""
    out[0] = shr(add(shl(sums[0], 2), 8), 4)
    out[2 * n - 1] = shr(add(shl(sums[n - 1], 2), 7), 4)


@inlined
def _join_row(y: Any, cb: Any, cr: Any, pixels: Any) -> None:
    """Brightness and colour differences to red, green, blue."""
    for x in range(y.shape[0]):
        light, blue, red = I(y[x]), sub(cb[x], 128), sub(cr[x], 128)
        r = shr(add(mul(red, 91881), _HALF), 16)
        g = shr(sub(sub(_HALF, mul(blue, 22554)), mul(red, 46802)), 16)
        b = shr(add(mul(blue, 116130), _HALF), 16)
        pixels[3 * x] = _level(add(light, r))
        pixels[3 * x + 1] = _level(add(light, g))
        pixels[3 * x + 2] = _level(add(light, b))


@inlined
def _level(value: Any) -> Any:
    return min(max(value, I(0)), I(255))


# --------------------------------------------------------------------------------------
# JPEG there and back.
# --------------------------------------------------------------------------------------


@compiled()
def round_trip(
    images: Any, out: Any, shape: Any, blocks: Any, half_blocks: Any, tables: Any
) -> None:
    """Images as they are after having been saved and read.

    Args:
        images: ``(m, height, 3 * width)`` uint8.
        out: The same shape, to be written in full.
        shape: Of the planes, see ``jpeg_colour_kernels``.
        blocks: Where the blocks of brightness start in the planes.
        half_blocks: Where those of the colour differences start.
        tables: ``(2, 4, 512)`` int32: quantisation of brightness, and of colour.
    """
    stride, half_stride = shape[2], shape[3]
    planes = np.empty(64 * (blocks.shape[0] + half_blocks.shape[0]), np.uint8)
    rows = np.empty((2, 4 * half_stride), np.uint8)
    sums = np.zeros(2 * half_stride + 2, np.int16)
    samples = np.zeros(8 * COLUMNS, np.uint8)
    a, b = np.empty(8 * COLUMNS, np.int16), np.empty(8 * COLUMNS, np.int16)
    for j in range(images.shape[0]):
        to_planes(images[j], planes, shape, rows)
        code_blocks(planes, blocks, stride, tables[0], samples, a, b)
        code_blocks(planes, half_blocks, 2 * half_stride, tables[1], samples, a, b)
        from_planes(planes, out[j], shape, rows, sums)
