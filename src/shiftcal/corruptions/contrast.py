"""Loss of contrast."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class Contrast(Corruption):
    """Every channel drawn towards its mean over the image: ``m + c (x - m)``.

    A setting is the factor ``c``, so that small ones are severe. The mean is one of the image and
    the channel, not of the grey image: a picture of one colour stays what it is. Values are cut
    to whole grey levels, as published; a ten-thousandth of a level is added before, so that what
    is a whole number is not taken for the number below.
    """

    group = "digital"
    random = False
    settings = Settings(
        cifar=((0.75,), (0.5,), (0.4,), (0.3,), (0.15,)),
        tiny_imagenet=((0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
        imagenet=((0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return np.float32(setting[0])

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.contrast_kernels import draw_to_mean

        flat = (len(images), -1)
        draw_to_mean(images.reshape(flat), out.reshape(flat), plan)
