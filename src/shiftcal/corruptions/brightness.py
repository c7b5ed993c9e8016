"""Brightness."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class Brightness(Corruption):
    """The value of HSV raised by ``c`` and clipped at 1; hue and saturation stay.

    A setting is ``c``. The value is the largest channel, and with it the others grow in
    proportion: ``x min(V + c, 1) / V``. Black becomes grey. Nothing is clipped but the value, so
    a saturated colour stays saturated.

    Values are cut to whole grey levels, as published; a ten-thousandth of a level is added before,
    so that what is a whole number is not taken for the number below. The published arithmetic,
    which goes through HSV in float64, loses such a level here and there.
    """

    group = "weather"
    random = False
    settings = Settings(
        cifar=((0.05,), (0.1,), (0.15,), (0.2,), (0.3,)),
        tiny_imagenet=((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
        imagenet=((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return np.float32(255 * setting[0])

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.brightness_kernels import raise_value

        raise_value(images.reshape(-1), out.reshape(-1), plan)
