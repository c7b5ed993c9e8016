"""Defocus, glass, motion, zoom and Gaussian blur."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions.corruption import Published, SeverityTable
from shiftcal.corruptions.filters import (
    crop_length,
    gaussian_weights,
    line_steps,
    line_weights,
    zoom_axis,
)


@final
class DefocusBlur(Published):
    """Every channel correlated with a disk whose edge is softened, as a lens out of focus does.

    A setting is ``(r, s)``. The kernel is the indicator of ``x**2 + y**2 <= r**2`` on a grid of
    17 pixels (of ``2 r + 1`` if ``r`` is above 8), divided by its sum and smoothed with a
    Gaussian of standard deviation ``s`` of 3 by 3 pixels (5 by 5 if ``r`` is above 8). The image
    is reflected about its outermost pixels, and the result cut, not rounded, to whole grey levels.

    Kept as published:

    * The Gaussian is so short that an ``s`` of 0.2 or less does nothing to the disk, and below a
      radius of 1 the disk is one pixel: all kernels of the CIFAR table are 3 by 3 pixels.
    * The smoothing reflects the kernel about the edge of its grid. At radii 8 and 10 the disk
      touches it, so that the kernel sums to 1.013 and 1.011: the image becomes brighter.

    Where the published computation meets a whole grey level exactly, its kernel of 32-bit numbers
    decides whether that or the level below is the result (a disk of 29 pixels darkens images of
    one colour by 1). Here it is the level itself. Beyond that, the fixed-point sums are within
    0.05 of a level of the exact ones on photographs, and within 0.3 on any image.
    """

    name = "defocus_blur"
    group = "blur"
    random = False
    settings = SeverityTable(
        cifar=((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        tiny_imagenet=((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        imagenet=((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        radius, sigma = setting
        if radius < 2:
            kernel = defocus_kernel(radius, sigma)
            middle = len(kernel) // 2
            return "weigh_images", neighbours(*kernel[middle + 1, middle : middle + 2])
        weights = softening(radius, sigma)
        margin = len(weights) // 2 if weights.min() * ONE >= 1 else 0
        half = weights[len(weights) // 2 :][: margin + 1]
        return "disk_images", *disk(radius, sigma), *smoothing(half)


@final
class GlassBlur(Published):
    """A Gaussian blur, pixels displaced at random, and the same blur once more.

    A setting is ``(s, d, k)``: the blur's standard deviation in pixels (cut at 4 ``s``, the last
    pixel repeated beyond an edge), the largest displacement, and how often all pixels are
    displaced. A pass goes through the rows from ``height - d`` up to ``d + 1``, in each through
    the columns from ``width - d`` back to ``d + 1``, and draws ``dx`` and ``dy`` for the pixel.

    Kept as published:

    * The two pixels do not change places: ``x[y, x] <- x[y + dy, x + dx]``, and the other stays
      as it is (the published exchange of two views of one array overwrites the first before it
      is read). A pixel later in the pass may then copy a copy.
    * ``dx`` and ``dy`` are uniform on ``-d, ..., d - 1``: the upper end is left out, so that the
      picture creeps down and to the right.
    * The rows and columns 0 to ``d``, and the last ``d - 1``, never change in a pass.
    * The first blur, like the second, is cut, not rounded, to whole grey levels.

    The mean distortion does not always grow with the published severity: a wider blur takes back
    some of what a displacement adds.

    Both blurs are those of ``gaussian_blur``; where ``s`` is below 1/8 they do nothing.
    """

    name = "glass_blur"
    group = "blur"
    monotone = False
    settings = SeverityTable(
        cifar=((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        tiny_imagenet=((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
        imagenet=((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        sigma, distance, passes = setting
        half = gaussian_half(sigma)
        moves = (neighbours(half[0] * half[-1], half[-1] ** 2), distance, passes)
        return "glass_images", *smoothing(half), *moves


@final
class MotionBlur(Published):
    """Blur along a straight line at a random angle, as a moving camera makes it.

    A setting is the radius ``r`` and the deviation ``s``, in pixels. Every value becomes the mean
    of the ``2 r + 1`` pixels that begin with its own and lie on a line, with the weights
    ``exp(-i**2 / (2 s**2))`` of half a Gaussian: pixel ``i`` of the line at angle ``a`` is the one
    at ``ceil(i cos a - 1/2)`` to the right and ``ceil(i sin a - 1/2)`` downwards. The angle is
    uniform between -45 and 45 degrees. Beyond the border the image is continued with its last row
    or column. That is ImageMagick's motion blur, which made the published sets.

    What is odd about it is kept. The line goes one way only, so that the image moves to the left;
    taps are whole pixels, without interpolation; and, unlike all other corruptions, the result is
    rounded, not cut, since ImageMagick wrote it.

    The angle is one of 4,096 equally likely ones, of which the steps are computed beforehand: a
    drawn angle's sine would have to be the same on every machine. The end of the line that holds
    less than 1e-5 of the weight is left out, which moves no value by more than 0.003 levels.
    """

    name = "motion_blur"
    group = "blur"
    monotone = False  # CIFAR's severities 3 and 4 have the same deviation
    settings = SeverityTable(
        cifar=((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        tiny_imagenet=((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        imagenet=((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        radius, sigma = setting
        weights = line_weights(radius, sigma)
        dx, dy = line_steps(len(weights), -45)
        reach = int(max(dx.max(), abs(dy).max()))
        return "blur_along_lines", weights, dx, dy, reach


# Up to here the sum over all copies is written down pixel by pixel: a few megabytes at the most.
_SMALL = 1 << 14


@final
class ZoomBlur(Published):
    """The mean of an image and copies of it enlarged more and more, as a zooming camera makes it.

    A setting is the number ``n`` of copies and the step ``d`` from one factor to the next, which
    begin at 1. Each copy is the middle of the image, ``ceil(side / factor)`` pixels of every side,
    enlarged with linear interpolation (corner on corner) and trimmed to size around the middle.
    Heights and widths that differ are treated each by that rule.

    What is odd in the published sets is kept. The first copy is enlarged by 1, so that the image
    itself is in the mean twice, which is over ``n + 1``. The factors were counted by adding a step
    that has no exact binary form until the end was passed: the end, which is meant to be outside,
    is inside for CIFAR and Tiny-ImageNet at severity 1 and 2 and for ImageNet at severity 1. The
    result is cut to whole levels.

    At a few sizes no set was published in, the interpolation used there loses the last row or
    column to a rounding error and leaves it black; here it never does. Levels that are whole but
    for rounding errors are not cut to the one below: 2**-12 is added first.
    """

    name = "zoom_blur"
    group = "blur"
    random = False
    settings = SeverityTable(
        cifar=((7, 0.01), (12, 0.01), (16, 0.01), (21, 0.01), (26, 0.01)),
        tiny_imagenet=((7, 0.01), (12, 0.01), (16, 0.01), (21, 0.01), (26, 0.01)),
        imagenet=((12, 0.01), (16, 0.01), (11, 0.02), (13, 0.02), (11, 0.03)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        count, step = setting
        factors = 1 + np.arange(count) * ((1 + step) - 1)  # rounded as a range of numpy is
        if height * width <= _SMALL:
            return "sum_pixel_taps", *pixel_taps(factors, height, width)
        return "sum_copies", *copy_taps(factors, height, width)


@final
class GaussianBlur(Published):
    """Every channel smoothed with a Gaussian of standard deviation ``s`` pixels.

    A setting is ``s``. The kernel is sampled, cut at ``int(4 s + 1/2)`` pixels and normalised;
    beyond an edge the last pixel is repeated. The result is cut, not rounded, to whole
    grey levels, as published. It is computed in 16-bit fixed point, within 0.06 of a level of the
    exact value, and so that an image of one colour stays as it is.
    """

    name = "gaussian_blur"
    group = "blur"
    random = False
    settings = SeverityTable(
        cifar=((0.4,), (0.6,), (0.7,), (0.8,), (1.0,)),
        tiny_imagenet=((0.5,), (0.75,), (1.0,), (1.25,), (1.5,)),
        imagenet=((1.0,), (2.0,), (3.0,), (4.0,), (6.0,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return "blur_images", *smoothing(gaussian_half(setting[0]))


# --------------------------------------------------------------------------------------
# Symmetric smoothing kernels in 16-bit fixed point.
#
# Grey levels are held as multiples of 1/128, sums of the kernel as multiples of 1/256: the sum of
# two values, and the result, then just fit 16 bits.
# --------------------------------------------------------------------------------------

ONE = 1 << 16


def gaussian_half(sigma: float) -> NDArray[np.float64]:
    """The Gaussian's weights from the centre outwards."""
    kernel = gaussian_weights(sigma, 4.0).astype(np.float64)
    return kernel[len(kernel) // 2 :]


def smoothing(half: NDArray[np.float64]) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Weights and biases for a kernel given from its centre outwards, ``(r + 1,)``, of sum 1.

    Every product is cut to a whole number, half a unit in the mean, which the biases give back.
    They are set so that an image of one colour keeps it.

    Returns:
        ``(r + 1,)`` weights with sum ``2**16``, that of the centre in units of ``2**-16``, those
        of the pairs in units of ``2**-17``; ``(2,)`` biases, what is added to the sums of the
        columns and of the rows.
    """
    weights = np.rint(half * np.where(np.arange(len(half)) == 0, ONE, 2 * ONE)).astype(np.int64)
    weights[0] = min(weights[0] + ONE - weights.sum(), ONE - 1)
    lost = (len(weights) + 1) // 2
    flat = 128 * np.arange(256)
    middle = (_flat_sum(flat, weights) + lost) >> 1
    sums = _flat_sum(middle, weights)
    needed = int((2 * flat - sums).max())
    return weights.astype(np.uint16), np.array([lost, max(lost, needed)], np.uint16)


def _flat_sum(values: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return ((2 * values[:, None] * weights) >> 16).sum(axis=1)


def neighbours(edge: float, corner: float) -> NDArray[np.int32]:
    """A kernel of three by three pixels of sum 1 by its weights off the centre, as ``2**-22``."""
    return np.rint(np.array([edge, corner]) * 2.0**22).astype(np.int32)


# --------------------------------------------------------------------------------------
# The published defocus kernel, and its disk.
# --------------------------------------------------------------------------------------


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


def disk(radius: float, sigma: float) -> tuple[NDArray[np.int64], int, int, int, int]:
    """What the means over the disk of a defocus kernel need.

    Returns:
        Half heights of the disk's columns, ``(2 int(radius) + 1,)``; ``multiple`` and ``factor``:
        a mean is ``sum * multiple * factor >> 16``, and where ``multiple`` is 0, as the sum may be
        too large, ``(sum >> 1) * factor >> 16``; half the length of the disk's second row, and
        the weight at which it is reflected at the edge of the kernel's grid, 0 where the disk
        stays inside it.
    """
    tall = half_heights(radius)
    count = int((2 * tall + 1).sum())
    # The sum is to fill 16 bits; the factor is rounded up, so that the mean of equal values is
    # that value.
    multiple = 1 << int(np.log2((ONE - 1) / (255 * count))) if 255 * count < ONE else 0
    filled = count * multiple if multiple else count / 2
    factor = int(np.ceil(128 * ONE / filled))
    if radius < 8:
        return tall, multiple, factor, 0, 0
    # All that the kernel has above 1 is in the four reflected runs, less four pixels.
    half = int(tall[1])
    weight = (defocus_kernel(radius, sigma).sum() - 1) / (8 * half)
    return tall, multiple, factor, half, round(weight * 128 * ONE / 4)


# --------------------------------------------------------------------------------------
# The mean of an image and its enlarged copies.
# --------------------------------------------------------------------------------------


def _axis(length: int, factor: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    index, weight = zoom_axis(length, factor)
    return index + (length - crop_length(length, factor)) // 2, weight


def pixel_taps(
    factors: NDArray[np.float64], height: int, width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Small images: every pixel as one weighted sum over source pixels, all copies together.

    Returns:
        ``(pixels + 1,)``, where each pixel's taps begin, of which every pixel has an even number;
        ``(taps,)`` source pixels, in order; ``(taps,)`` weights.
    """
    pixels = height * width
    places, weights = [np.arange(pixels) * (pixels + 1)], [np.ones(pixels)]
    for factor in factors:
        (row, down), (column, across) = _axis(height, factor), _axis(width, factor)
        for i, u in enumerate((1 - down, down)):
            for j, v in enumerate((1 - across, across)):
                source = (row + i)[:, None] * width + (column + j)
                places.append(np.arange(pixels) * pixels + source.ravel())
                weights.append((u[:, None] * v).ravel())
    at, value = np.concatenate(places), np.concatenate(weights)
    at, value = at[value != 0], value[value != 0]
    found, which = np.unique(at, return_inverse=True)
    sums = np.bincount(which, value) * (1 / (len(factors) + 1))
    counts = np.bincount(found // pixels, minlength=pixels)
    even = counts + counts % 2
    first = np.concatenate([[0], np.cumsum(even)])
    place = np.repeat(first[:-1] - np.cumsum(counts) + counts, counts) + np.arange(len(found))
    source, weight = np.repeat(np.arange(pixels), even), np.zeros(first[-1], np.float32)
    source[place], weight[place] = found % pixels, sums
    return first, source, weight


def copy_taps(factors: NDArray[np.float64], height: int, width: int) -> tuple[Any, ...]:
    """Large images: copy by copy, rows and columns one after the other.

    Columns are cut into runs, in which the source column grows by one from pixel to pixel. Factor
    1 is left out and counted with the image itself.

    Returns:
        ``(copies, height)`` source rows; ``(copies, height, 2)`` weights of that row and the
        next, with 1 / (n + 1); ``(runs,)`` first value of each run in a row of ``3 width``
        values; ``(runs,)`` the value it begins to read at; ``(copies + 1,)`` first run of each
        copy; ``(copies, 2, 3 width)`` weights of the source value and that of the next pixel;
        the weight of the image itself, which enters twice.
    """
    share = 1 / (len(factors) + 1)
    rows, row_weights, columns, runs, sources, copy_runs = [], [], [], [], [], [0]
    for factor in factors[1:]:
        index, weight = _axis(height, factor)
        rows.append(index)
        row_weights.append(np.stack([share * (1 - weight), share * weight], axis=1))
        index, weight = _axis(width, factor)
        columns.append(np.repeat(np.stack([1 - weight, weight]), 3, axis=1))
        begins = np.concatenate([[0], 1 + np.flatnonzero(np.diff(index) != 1)])
        runs.append(3 * begins)
        sources.append(3 * index[begins])
        copy_runs.append(copy_runs[-1] + len(begins))
    return (
        np.array(rows),
        np.array(row_weights, np.float32),
        np.concatenate(runs),
        np.concatenate(sources),
        np.array(copy_runs),
        np.array(columns, np.float32),
        2 * share,
    )
