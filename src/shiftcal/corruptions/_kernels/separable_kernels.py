"""Smoothing of a plane by columns, then by rows, in 16-bit fixed point.

A plane is flat uint16 with the three channels of a pixel side by side, in multiples of 1/128 of a
grey level. Values are taken along the flat plane in long runs, over the ends of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.fixed_point_kernels import U16, weighted_sum
from shiftcal.corruptions._kernels.inner_kernels import inner
from shiftcal.corruptions._kernels.line_kernels import fill_margins
from shiftcal.corruptions._kernels.smoothing_plan import RUN

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
