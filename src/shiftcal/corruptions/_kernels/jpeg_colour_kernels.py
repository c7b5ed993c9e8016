"""What JPEG does to colours: brightness at full resolution, two colour differences at half of it.

All in whole numbers of 16 binary places, as the reference codec has it. The planes of an image lie
in one flat uint8 array: brightness in rows of ``stride`` values, then, from ``first`` on, rows of
both colour differences side by side, ``half_stride`` values each. All are padded to whole blocks of
8 x 8. ``shape`` is the tuple ``(height, width, stride, half_stride, first)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.inner_kernels import inlined, inner
from shiftcal.corruptions._kernels.narrow_int_kernels import add, mul, shl, shr, sub

I = np.int32  # noqa: E741
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
