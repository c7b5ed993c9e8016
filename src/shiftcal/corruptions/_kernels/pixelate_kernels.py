"""Fewer, larger pixels. Importing this file imports numba: only in functions.

Means along a row are taken of 32 rows at once, turned round so that the same pixel of all rows is
one piece of memory. Arrays are flat and their parts named by where they start: a slice made in a
loop costs more here than what is done to it. Places are unsigned, or numba would ask at every one
whether it counts from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.inner_kernels import inlined, inner
from shiftcal.corruptions._kernels.narrow_int_kernels import add, mul, shr
from shiftcal.corruptions._kernels.transpose_kernels import transpose_block
from shiftcal.numerics._jit import compiled

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
