"""Defocus, glass, motion, zoom and Gaussian blur."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal.corruptions.corruption import Keys, Published, Settings
from shiftcal.corruptions.kernels.blur_plans import (
    ONE,
    copy_taps,
    defocus_kernel,
    disks,
    gaussian_weights,
    line_steps,
    line_weights,
    mirrored,
    nearest,
    neighbours,
    pixel_taps,
    smoothing,
    softening,
)
from shiftcal.types import Images


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
    settings = Settings(
        cifar=((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        tiny_imagenet=((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        imagenet=((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        radius, sigma = setting
        if radius < 2:
            kernel = defocus_kernel(radius, sigma)
            middle = len(kernel) // 2
            edge, corner = kernel[middle, middle + 1], kernel[middle + 1, middle + 1]
            sides = (mirrored(height, 1), mirrored(width, 1))
            return "blur_kernels:weigh_images", neighbours(edge, corner, *sides)
        weights = softening(radius, sigma)
        margin = len(weights) // 2 if weights.min() * ONE >= 1 else 0
        half = weights[len(weights) // 2 :][: margin + 1]
        return (
            "blur_kernels:disk_images",
            disks(radius, sigma, margin=margin, height=height, width=width),
            smoothing(half, mirrored(height, margin), mirrored(width, margin)),
        )


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
    settings = Settings(
        cifar=((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        tiny_imagenet=((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
        imagenet=((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        sigma, distance, passes = setting
        kernel = gaussian_weights(sigma, 4.0).astype(np.float64)
        radius = len(kernel) // 2
        half = kernel[radius:]
        return (
            "blur_kernels:glass_images",
            smoothing(half, nearest(height, radius), nearest(width, radius)),
            neighbours(half[0] * half[-1], half[-1] ** 2, nearest(height, 1), nearest(width, 1)),
            np.array([distance, passes], np.int64),
        )


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
    axes = 4
    settings = Settings(
        cifar=((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        tiny_imagenet=((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        imagenet=((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        radius, sigma = setting
        weights = line_weights(radius, sigma)
        dx, dy = line_steps(len(weights), -45)
        reach = int(max(dx.max(), abs(dy).max()))
        return "blur_kernels:blur_along_lines", weights, dx, dy, reach


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
    settings = Settings(
        cifar=((7, 0.01), (12, 0.01), (16, 0.01), (21, 0.01), (26, 0.01)),
        tiny_imagenet=((7, 0.01), (12, 0.01), (16, 0.01), (21, 0.01), (26, 0.01)),
        imagenet=((12, 0.01), (16, 0.01), (11, 0.02), (13, 0.02), (11, 0.03)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        count, step = setting
        factors = 1 + np.arange(count) * ((1 + step) - 1)  # rounded as a range of numpy is
        if height * width <= _SMALL:
            return "blur_kernels:sum_pixel_taps", *pixel_taps(factors, height, width)
        taps = copy_taps(factors, height, width)
        return "blur_kernels:sum_copies", taps[:2], taps[2:6], taps.own_weight

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        if plan[0] == "blur_kernels:sum_pixel_taps":  # pixels in one row
            shape = (len(images), 1, -1, 3)
            images, out = images.reshape(shape)[:, 0], out.reshape(shape)[:, 0]
        super()._apply(images, out, plan, keys)


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
    settings = Settings(
        cifar=((0.4,), (0.6,), (0.7,), (0.8,), (1.0,)),
        tiny_imagenet=((0.5,), (0.75,), (1.0,), (1.25,), (1.5,)),
        imagenet=((1.0,), (2.0,), (3.0,), (4.0,), (6.0,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        kernel = gaussian_weights(setting[0], 4.0).astype(np.float64)
        radius = len(kernel) // 2
        sides = (nearest(height, radius), nearest(width, radius))
        return "blur_kernels:blur_images", smoothing(kernel[radius:], *sides)
