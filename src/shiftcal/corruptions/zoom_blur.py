"""Zoom blur."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions._kernels.zoom_plan import PixelTaps, copy_taps, pixel_taps
from shiftcal.corruptions.base import Corruption, Keys, Settings

# Up to here the sum over all copies is written down pixel by pixel: a few megabytes at the most.
_SMALL = 1 << 14


@final
class ZoomBlur(Corruption):
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
            return pixel_taps(factors, height, width)
        return copy_taps(factors, height, width)

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.zoom_blur_kernels import sum_copies, sum_pixel_taps

        m, height, width = images.shape[:3]
        if isinstance(plan, PixelTaps):
            shape = (m, height * width, 3)
            sum_pixel_taps(images.reshape(shape), out.reshape(shape), *plan)
            return
        shape = (m, height, width * 3)
        rows, columns = tuple(plan[:2]), tuple(plan[2:6])
        sum_copies(images.reshape(shape), out.reshape(shape), rows, columns, plan.own_weight)
