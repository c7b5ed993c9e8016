"""Glass blur."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions._kernels.gaussian_weights import gaussian_weights
from shiftcal.corruptions._kernels.smoothing_plan import nearest, neighbours, smoothing
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class GlassBlur(Corruption):
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
            smoothing(half, nearest(height, radius), nearest(width, radius)),
            neighbours(half[0] * half[-1], half[-1] ** 2, nearest(height, 1), nearest(width, 1)),
            np.array([distance, passes], np.int64),
        )

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.glass_blur_kernels import glass_images

        flat = (*images.shape[:2], -1)
        blur, near, moves = plan
        glass_images(images.reshape(flat), out.reshape(flat), blur, near, moves, keys)
