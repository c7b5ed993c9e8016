"""The published defocus kernel, and a disk as runs of pixels at its rim."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions._kernels.smoothing_plan import ONE, RUN, mirrored, places_in_row


def softening(radius: float, sigma: float) -> NDArray[np.float64]:
    """The Gaussian that smooths the disk: 3 weights, 5 where the radius is above 8."""
    reach = 1 if radius <= 8 else 2
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return weights / weights.sum()


def half_heights(radius: float) -> NDArray[np.int64]:
    """How far the disk reaches up and down in each of its columns, ``(2 int(radius) + 1,)``."""
    reach = int(radius)
    return np.floor(np.sqrt(radius**2 - np.arange(-reach, reach + 1.0) ** 2)).astype(np.int64)


def defocus_kernel(radius: float, sigma: float) -> NDArray[np.float64]:
    """The disk of ones within the radius, divided by their number and smoothed.

    It is drawn on a grid of 17 pixels, or of ``2 radius + 1`` above a radius of 8, and reflected
    about the grid's outermost pixels for the smoothing. Where the disk touches them, at 8 and at
    10, the sum is above 1.
    """
    reach = 8 if radius <= 8 else int(radius)
    square = np.arange(-reach, reach + 1) ** 2
    disk = (square[:, None] + square <= radius**2).astype(np.float64)
    weights = softening(radius, sigma)
    side = len(weights) // 2
    kernel = np.pad(disk / disk.sum(), side, mode="reflect")
    for axis in (0, 1):
        view = np.lib.stride_tricks.sliding_window_view(kernel, len(weights), axis=axis)
        kernel = view @ weights
    return kernel


class Disks(NamedTuple):
    """What the means over a disk around every pixel of images of one size need.

    Running sums down the columns are kept for the image padded by ``reach + 1`` pixels (by
    ``margin`` more above and below, for the smoothing), a line of 0 first. Places are counted
    from the line above a row's disks.

    Attributes:
        reach: The disk's radius in whole pixels.
        rows: ``(h + 2 (reach + 1 + margin),)`` int64, the image's row for each row of the padded
            one.
        places: ``(3 (w + 2 (reach + 1)),)`` int64, the place in a padded row that its values come
            from.
        single: The number of columns of the disk that are taken one by one.
        ends: ``(single + g,)`` int64, where the running sums are to the lower ends of these
            columns, and then, for whole lines, to those of the other heights.
        starts: ``(single + g,)`` int64, where they are to above the upper ends.
        group: The rows that are worked on at a time.
        left: ``(c,)`` int64, where the other columns are that lie left of the centre, among the
            lines to work in.
        right: ``(c,)`` int64, likewise for those right of the centre.
        scale: ``(2,)`` int64: a mean is ``sum * scale[0] * scale[1] >> 16``, and where
            ``scale[0]`` is 0, as the sum may be too large, ``(sum >> 1) * scale[1] >> 16``.
        spill: ``(2,)`` int64, half the length of the disk's second row, and the weight at which
            it is reflected at the edge of the kernel's grid; 0 where the disk stays inside it.
    """

    reach: int
    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    single: int
    ends: NDArray[np.int64]
    starts: NDArray[np.int64]
    group: int
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    scale: NDArray[np.int64]
    spill: NDArray[np.int64]


def disks(radius: float, sigma: float, *, margin: int, height: int, width: int) -> Disks:
    """The plan for the disk of a defocus kernel, with ``margin`` pixels for its smoothing."""
    reach = int(radius)
    columns = np.arange(-reach, reach + 1)
    tall = half_heights(radius)
    # A line of its own saves reading from four columns of the same height.
    shared = (np.array([(tall == t).sum() for t in tall]) >= 4) & (columns != 0)
    heights, which = np.unique(tall[shared & (columns < 0)], return_inverse=True)
    padded, middle = 3 * (width + 2 * (reach + 1)), 3 * (reach + 1)
    group = max(1, RUN // padded)
    depth = np.concatenate([tall[~shared], heights])
    across = np.concatenate([middle + 3 * columns[~shared], np.zeros(len(heights), np.int64)])
    lines, aside = (2 + which) * group * padded + middle, 3 * columns[shared & (columns < 0)]
    return Disks(
        reach=reach,
        rows=mirrored(height, reach + 1 + margin),
        places=places_in_row(mirrored(width, reach + 1), reach + 1),
        single=int((~shared).sum()),
        ends=(reach + 2 + depth) * padded + across,
        starts=(reach + 1 - depth) * padded + across,
        group=group,
        left=lines + aside,
        right=lines - aside,
        scale=_scale(int((2 * tall + 1).sum())),
        spill=_spill(radius, sigma, tall) if reach >= 8 else np.zeros(2, np.int64),
    )


def _scale(count: int) -> NDArray[np.int64]:
    # The sum is to fill 16 bits; the factor is rounded up, so that the mean of equal values is
    # that value.
    multiple = 1 << int(np.log2((ONE - 1) / (255 * count))) if 255 * count < ONE else 0
    filled = count * multiple if multiple else count / 2
    return np.array([multiple, int(np.ceil(128 * ONE / filled))], np.int64)


def _spill(radius: float, sigma: float, tall: NDArray[np.int64]) -> NDArray[np.int64]:
    # All that the kernel has above 1 is in the four reflected runs, less four pixels.
    half = int(tall[1])
    weight = (defocus_kernel(radius, sigma).sum() - 1) / (8 * half)
    return np.array([half, np.rint(weight * 128 * ONE / 4)], np.int64)
