"""What a smoothed disk gains where it touches the edge of the grid it is drawn on.

The smoothing reflects the kernel about its outermost rows and columns, so that each of the four
has the row or column next to it added once more, at the weight of a neighbour in the smoothing;
and what the smoothing would have put outside the grid, of the disk's four outermost pixels, is
missing. Both are taken as they are, not smoothed along the edge: a difference of at most a quarter
of a grey level on any image, and of a hundredth on photographs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.fixed_point_kernels import U16, upper_half, weighted_sum
from shiftcal.corruptions._kernels.inner_kernels import inner
from shiftcal.corruptions._kernels.line_kernels import ADD, SUBTRACT, sum_pairs
from shiftcal.corruptions._kernels.separable_kernels import smooth_columns

_BELOW = 1020  # four pixels of 255: added to a sum that may be as far below 0


@inner()
def reflect(reflected: Any, source: Any, padded: Any, half: Any, work: Any) -> None:
    """Sum the pixels of some rows over the length of the disk's second row.

    Args:
        reflected: Flat uint16, the result, each sum where its middle is.
        source: Flat uint16, the running sums from the line above the first row.
        padded: The length of a line.
        half: Half the length of the disk's second row.
        work: Flat uint16 to work in, with room for ``reflected``.
    """
    n = len(reflected)
    pixels, below = work[:n], source[padded : padded + n]
    for i in range(n):
        pixels[i] = U16(below[i] - source[i])
    first, second = np.empty(half, np.int64), np.empty(half, np.int64)
    for k in range(half):
        first[k], second[k] = 3 * k, 3 * (2 * half - k)
    out, middle = reflected[3 * half : n - 3 * half], pixels[3 * half : n - 3 * half]
    sum_pairs(out, pixels, first, second, ADD)
    for i in range(len(out)):
        out[i] = U16(out[i] + middle[i])


@inner()
def spill(out: Any, source: Any, reflected: Any, padded: Any, disk: Any, work: Any) -> None:
    """What some rows gain, in multiples of 1/128, with that of ``_BELOW`` on top.

    Args:
        out: ``(b, 3 w)`` uint16, the result.
        source: Flat uint16, the running sums from the line above the first row's disks.
        reflected: Flat uint16, from :func:`reflect`, from the line above the first row's disks.
        padded: The length of a line.
        disk: A ``Disks``.
        work: Flat uint16 to work in, with room for ``b`` lines.
    """
    rows, width = out.shape
    n, reach, half = (rows - 1) * padded + width, disk.reach, disk.spill[0]
    centre = (reach + 1) * padded + 3 * (reach + 1)
    ends, starts = np.empty(6, np.int64), np.empty(6, np.int64)
    for side in range(2):
        sign = 2 * side - 1
        ends[3 * side] = centre + (half + 1) * padded + sign * 3 * reach
        starts[3 * side] = centre - half * padded + sign * 3 * reach
        # Subtracted: the pixels beyond the ends of the disk's middle row and column.
        ends[3 * side + 1] = centre + sign * (reach + 1) * padded
        starts[3 * side + 1] = ends[3 * side + 1] + padded
        ends[3 * side + 2] = centre + sign * 3 * (reach + 1)
        starts[3 * side + 2] = ends[3 * side + 2] + padded
    sums = work[:n]
    sum_pairs(sums, source, ends, starts, SUBTRACT)
    above, below = centre - reach * padded, centre + reach * padded
    for y in range(rows):
        at = y * padded
        upper = reflected[above + at : above + at + width]
        lower = reflected[below + at : below + at + width]
        _weigh(out[y], sums[at : at + width], upper, lower, U16(disk.spill[1]))


@inner()
def _weigh(out: Any, sums: Any, above: Any, below: Any, factor: Any) -> None:
    for i in range(len(out)):
        total = U16(sums[i] + above[i] + below[i] + U16(_BELOW))
        out[i] = upper_half(U16(total << U16(2)), factor)


@inner()
def smooth_and_add(
    image: Any, plane: Any, spilt: Any, factor: Any, plan: Any, middle: Any, sums: Any
) -> None:
    """Smooth a plane as ``smooth`` does, add what was spilt, and stop at 0 and 255.

    Args:
        image: ``(b, 3 w)`` uint8, the result.
        plane: Flat uint16, ``(b + 2 r) * 3 w`` values.
        spilt: ``(b, 3 w)`` uint16.
        factor: The weight that ``spilt`` was made with.
        plan: A ``Smoothing``.
        middle: ``(b, 3 (w + 2 r))`` uint16 to work in.
        sums: Flat uint16 to work in, room for ``max(3 (w + 2 r), RUN)``.
    """
    rows, width = image.shape
    edge, padded = 3 * (len(plan.weights) - 1), middle.shape[1]
    flat = middle.reshape(middle.size)
    below = U16((_BELOW * 4 * factor) >> 16)
    smooth_columns(middle[:rows], plane, plan.weights, plan.biases[0], plan.places, sums)
    for y in range(rows):
        line = sums[:width]
        weighted_sum(line, flat, y * padded + edge, 3, plan.weights, plan.biases[1])
        _add_and_cut(image[y], line, spilt[y], below)


@inner()
def _add_and_cut(out: Any, sums: Any, extra: Any, below: Any) -> None:
    for i in range(len(out)):
        total = max(U16(U16(sums[i] >> U16(1)) + extra[i]), below)
        out[i] = np.uint8(min(U16(U16(total - below) >> U16(7)), U16(255)))
