"""Elastic transform. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels import bilinear_kernels as bilinear
from shiftcal.corruptions._kernels.cosine_field_kernels import cosine_fields, noise_row
from shiftcal.corruptions._kernels.counter_kernels import U, word
from shiftcal.corruptions._kernels.smooth_field_kernels import REFLECT, scratch_size, smooth_field
from shiftcal.numerics._jit import compiled

F = np.float32
_JITTER = U(0xFFFFFFF0)


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
        bilinear.pack(images[j], plane)
        inverse = _random_affine(h, w, jitter, keys[j, 0], keys[j, 1])
        for y in range(h):
            _affine_row(points, y, inverse)
            bilinear.locate(points[0], points[1], (h, w), F(0), bilinear.FOR_EIGHT, at, shares)
            row = out[j, y].reshape(-1)
            bilinear.sample_bytes(plane.reshape(-1), w + 1, bilinear.FOR_EIGHT, at, shares, row)


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
        noise_row(fields[0].reshape(-1), fields[1].reshape(-1), U(0), U(1), amplitude, a, b)
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
    bilinear.pack(image, planes[0])
    for y in range(h):
        _affine_row(points, y, inverse)
        bilinear.locate(points[0], points[1], (h, w), F(0), bilinear.FOR_EIGHT, at, shares)
        bilinear.sample_packed(first, w + 1, at, shares, planes[1, y])
    for y in range(h):
        _displaced_row(points, y, fields[0, y], fields[1, y])
        bilinear.locate(points[0], points[1], (h, w), F(0.5), bilinear.FOR_ELEVEN, at, shares)
        bilinear.sample_bytes(second, w + 1, bilinear.FOR_ELEVEN, at, shares, out[y].reshape(-1))


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
    return F(jitter * ((2.0 * word(U(_JITTER + U(i)), a, b) + 1.0) * 2.0**-32 - 1.0))


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
