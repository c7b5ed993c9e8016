"""Means of enlarged copies. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.line_blur_kernels import Index
from shiftcal.numerics._jit import compiled

TOGETHER = 16  # small images whose values lie side by side, so that one weight serves them all
_ABOVE = np.float32(2.0**-12)  # lifts whole levels above rounding errors before the cut


@compiled()
def sum_pixel_taps(images: Any, out: Any, first: Any, source: Any, weight: Any) -> None:
    """Every pixel of every image as the same weighted sum over its image's pixels.

    Args:
        images: ``(m, pixels, 3)`` uint8.
        out: Of the same shape.
        first: As in ``PixelTaps``.
        source: As in ``PixelTaps``.
        weight: As in ``PixelTaps``.
    """
    m, pixels = images.shape[:2]
    together = min(m, TOGETHER)
    beside = np.zeros((pixels, 3 * together), np.float32)
    total = np.empty(3 * together, np.float32)
    for start in range(0, m, together):
        part = images[start : start + together]
        _put_beside(part, beside)
        for p in range(pixels):
            total[:] = _ABOVE
            for k in range(first[p], first[p + 1], 2):
                _add_two(total, beside, source[k : k + 2], weight[k : k + 2])
            _take_apart(total, out[start : start + together], p)


@njit
def _put_beside(images: Any, beside: Any) -> None:
    for k in range(images.shape[0]):
        for p in range(images.shape[1]):
            for c in range(3):
                beside[p, 3 * k + c] = images[k, p, c]


@njit
def _add_two(total: Any, beside: Any, source: Any, weight: Any) -> None:
    w0, w1 = weight[0], weight[1]
    v0, v1 = beside[source[0]], beside[source[1]]
    for j in range(total.shape[0]):
        total[j] += w0 * v0[j] + w1 * v1[j]


@njit
def _take_apart(total: Any, out: Any, p: Any) -> None:
    for k in range(out.shape[0]):
        for c in range(3):
            out[k, p, c] = np.uint8(np.int32(total[3 * k + c]))


@compiled()
def sum_copies(images: Any, out: Any, rows: Any, columns: Any, own_weight: Any) -> None:
    """The weighted sum of every image and its enlarged copies, row by row.

    Of every copy the last two enlarged source rows are kept, since the next row mostly needs them.

    Args:
        images: ``(m, height, width * 3)`` uint8.
        out: Of the same shape.
        rows: ``row`` and ``row_weight`` of ``CopyTaps``.
        columns: ``run``, ``run_source``, ``copy_runs`` and ``column_weight`` of ``CopyTaps``.
        own_weight: As in ``CopyTaps``.
    """
    row, row_weight = rows
    m, height, n = images.shape
    copies = row.shape[0]
    kept = np.empty((copies, 2, n), np.float32)
    holds = np.empty((copies, 2), np.int64)
    plain = np.empty(n, np.float32)
    total = np.empty(n, np.float32)
    for k in range(m):
        holds[:] = -1
        for y in range(height):
            _start(images[k, y], total, own_weight)
            for z in range(copies):
                i = row[z, y]
                for s in range(i, i + 2):
                    if holds[z, s % 2] != s:
                        holds[z, s % 2] = s
                        _plain(images[k, s], plain)
                        _enlarge_row(plain, kept[z, s % 2], columns, z)
                _add_rows(total, kept[z, i % 2], kept[z, (i + 1) % 2], row_weight[z, y])
            _cut(total, out[k, y])


@njit
def _start(pixels: Any, total: Any, weight: Any) -> None:
    for j in range(total.shape[0]):
        total[j] = weight * np.float32(pixels[j]) + _ABOVE


@njit
def _plain(pixels: Any, plain: Any) -> None:
    for j in range(plain.shape[0]):
        plain[j] = pixels[j]


@njit
def _enlarge_row(plain: Any, enlarged: Any, columns: Any, z: Any) -> None:
    run, run_source, copy_runs, column_weight = columns
    here, after = column_weight[z, 0], column_weight[z, 1]
    last = copy_runs[z + 1] - 1
    for r in range(copy_runs[z], last + 1):
        begin = run[r]
        end = enlarged.shape[0] if r == last else run[r + 1]
        shift = Index(run_source[r] - begin)
        for k in range(begin, end):
            j = Index(k)
            enlarged[j] = here[j] * plain[j + shift] + after[j] * plain[j + shift + Index(3)]


@njit
def _add_rows(total: Any, upper: Any, lower: Any, weight: Any) -> None:
    w0, w1 = weight[0], weight[1]
    for j in range(total.shape[0]):
        total[j] += w0 * upper[j] + w1 * lower[j]


@njit
def _cut(total: Any, row: Any) -> None:
    for j in range(total.shape[0]):
        row[j] = np.uint8(np.int32(total[j]))
