"""Gaussian blur."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions._kernels.gaussian_weights import gaussian_weights
from shiftcal.corruptions._kernels.smoothing_plan import nearest, smoothing
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class GaussianBlur(Corruption):
    """Every channel smoothed with a Gaussian of standard deviation ``s`` pixels.

    A setting is ``s``. The kernel is sampled, cut at ``int(4 s + 1/2)`` pixels and normalised;
    beyond an edge the image goes on with its last pixel. The result is cut, not rounded, to whole
    grey levels, as published. It is computed in 16-bit fixed point, within 0.06 of a level of the
    exact value, and so that an image of one colour stays as it is.
    """

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
        return smoothing(kernel[radius:], nearest(height, radius), nearest(width, radius))

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.gaussian_blur_kernels import blur_images

        flat = (*images.shape[:2], -1)
        blur_images(images.reshape(flat), out.reshape(flat), plan)
