"""Blurring images along a line. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.counter_kernels import U, word
from shiftcal.corruptions._kernels.line_blur_kernels import Index, line_row, line_starts
from shiftcal.numerics._jit import compiled

_BAND = 1 << 18  # values in a band of rows, so that large images need no large buffer


@compiled()
def blur_along_lines(
    images: Any, out: Any, weights: Any, dx: Any, dy: Any, reach: Any, keys: Any
) -> None:
    """Each image along the line of an angle drawn with number 0 of its stream, rounded.

    Args:
        images: ``(m, height, width, 3)`` uint8.
        out: Of the same shape.
        weights: ``(taps,)`` float32.
        dx: ``(4096, taps)`` steps to the right, none negative.
        dy: ``(4096, taps)`` steps downwards.
        reach: The largest step of all.
        keys: ``(m, 2)`` uint32.
    """
    m, height, width = images.shape[:3]
    n = 3 * width
    stride = n + 3 * reach
    band = min(height, max(2 * reach, _BAND // stride))
    plane = np.empty(min(height, band + 2 * reach) * stride, np.float32)
    total = np.empty(n, np.float32)
    starts = np.empty(weights.shape[0], np.uint64)
    for k in range(m):
        angle = np.int64(word(U(0), keys[k, 0], keys[k, 1]) >> U(20))
        for top in range(0, height, band):
            first = max(top - reach, 0)
            bottom = min(top + band, height)
            _pad_right(images[k, first : min(bottom + reach, height)], plane, stride)
            for y in range(top, bottom):
                line_starts(starts, dx[angle], dy[angle], y, (height, stride, -first * stride, 3))
                total[:] = np.float32(0.5)
                line_row(total, plane, starts, weights)
                _write(total, out[k, y])


@njit
def _pad_right(rows: Any, plane: Any, stride: Any) -> None:
    height, width = rows.shape[:2]
    for y in range(height):
        flat = rows[y].reshape(3 * width)
        row = plane[y * stride : (y + 1) * stride]
        for j in range(3 * width):
            row[j] = flat[j]
        for j in range(3 * width, stride):
            row[Index(j)] = row[Index(j - 3)]


@njit
def _write(total: Any, row: Any) -> None:
    flat = row.reshape(total.shape[0])
    for j in range(total.shape[0]):
        flat[j] = np.uint8(np.int32(total[j]))
