"""Impulse noise."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class ImpulseNoise(Corruption):
    """Salt and pepper: some values become 0 or 255, each with the same probability.

    A setting is the fraction of values that are replaced, salt and pepper together. Every channel
    value is drawn on its own, not every pixel, so that the specks are coloured: this is what
    scikit-image's ``random_noise`` does with an image in colour, and the published sets have it.
    A value that is replaced may have been 0 or 255 before.
    """

    group = "noise"
    settings = Settings(
        cifar=((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),
        tiny_imagenet=((0.01,), (0.02,), (0.05,), (0.08,), (0.14,)),
        imagenet=((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return np.uint32(2 * round(setting[0] * 2**31))

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.impulse_noise_kernels import salt_and_pepper

        flat = (len(images), -1)
        salt_and_pepper(images.reshape(flat), out.reshape(flat), plan, keys)
