"""Gaussian noise."""

from __future__ import annotations

from typing import Any, final

from shiftcal._types import Images
from shiftcal.corruptions._kernels.normal_cells import step_tables
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class GaussianNoise(Corruption):
    """Independent normal noise on every channel value: ``x + N(0, s**2)``, ``x`` in [0, 1].

    A setting is the standard deviation ``s``. Values are clipped and cut to whole grey levels,
    as published: ``floor(255 (x + e))``, so that the mean falls by half a level.

    The noise takes 16 random bits a value, and 12 more in the tails: the probability of a level
    is right to 2**-15, and no noise exceeds 5.29 standard deviations.
    """

    group = "noise"
    settings = Settings(
        cifar=((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),
        tiny_imagenet=((0.04,), (0.08,), (0.12,), (0.15,), (0.18,)),
        imagenet=((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        # A pixel is a whole number of levels, so the cut can be made on the noise.
        return step_tables(255 * setting[0])

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.gaussian_noise_kernels import add_noise

        steps, tail = plan
        flat = (len(images), -1)
        add_noise(images.reshape(flat), out.reshape(flat), steps, tail, keys)
