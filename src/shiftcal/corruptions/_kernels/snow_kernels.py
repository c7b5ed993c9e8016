"""Falling snow. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.counter_kernels import U, word
from shiftcal.corruptions._kernels.line_blur_kernels import Index, line_row, line_starts
from shiftcal.numerics._jit import compiled

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
