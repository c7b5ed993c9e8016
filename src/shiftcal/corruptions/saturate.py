"""Saturation."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class Saturate(Corruption):
    """The saturation of HSV made ``min(m S + a, 1)``; hue and value stay.

    A setting is the factor ``m`` and what is added, ``a``. The value ``V`` is the largest channel,
    and the distance of the others from it grows or shrinks: ``V - (V - x) S' / S``.

    Two odd things are kept as published. Severity is not an order: the first two take colour
    away, the other three add it. And where something is added, grey turns reddish, because a
    pixel without a hue counts as red.

    Values are cut to whole grey levels, as published; a ten-thousandth of a level is added before,
    so that what is a whole number is not taken for the number below. The published arithmetic,
    which goes through HSV in float64, loses such a level here and there.
    """

    group = "digital"
    random = False
    monotone = False
    settings = Settings(
        cifar=((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)),
        tiny_imagenet=((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (30.0, 0.2)),
        imagenet=((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return tuple(np.float32(number) for number in setting)

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.saturate_kernels import change_saturation

        change_saturation(images.reshape(-1), out.reshape(-1), *plan)
