"""Gaussian, shot, impulse and speckle noise."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal.corruptions.corruption import Published, Settings
from shiftcal.corruptions.kernels.random_tables import (
    alias_table,
    deviate_tables,
    level_masses,
    step_tables,
)


@final
class GaussianNoise(Published):
    """Independent normal noise on every channel value: ``x + N(0, s**2)``, ``x`` in [0, 1].

    A setting is the standard deviation ``s``. Values are clipped and cut to whole grey levels,
    as published: ``floor(255 (x + e))``, so that the mean falls by half a level.

    The noise takes 16 random bits a value, and 12 more in the tails: the probability of a level
    is right to 2**-15, and no noise exceeds 5.29 standard deviations.
    """

    name = "gaussian_noise"
    group = "noise"
    axes = 1
    settings = Settings(
        cifar=((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),
        tiny_imagenet=((0.04,), (0.08,), (0.12,), (0.15,), (0.18,)),
        imagenet=((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        # A pixel is a whole number of levels, so the cut can be made on the noise.
        return "noise_kernels:add_noise", *step_tables(255 * setting[0])


@final
class ShotNoise(Published):
    """The counting noise of few photons: ``Poisson(c x) / c`` for every channel value.

    A setting is the number ``c`` of photons that make full brightness, so that few are severe.
    Values are clipped and cut to whole grey levels, as published. So black stays black, about
    half of the white values fall below white and none rises above, and with few photons only the
    levels ``floor(255 k / c)`` are left. The probability of every level is right to 2**-32.
    """

    name = "shot_noise"
    group = "noise"
    axes = 1
    settings = Settings(
        cifar=((500.0,), (250.0,), (100.0,), (75.0,), (50.0,)),
        tiny_imagenet=((250.0,), (100.0,), (50.0,), (30.0,), (15.0,)),
        imagenet=((60.0,), (25.0,), (12.0,), (5.0,), (3.0,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return "noise_kernels:draw_levels", alias_table(level_masses(setting[0]))


@final
class ImpulseNoise(Published):
    """Salt and pepper: some values become 0 or 255, each with the same probability.

    A setting is the fraction of values that are replaced, salt and pepper together. Every channel
    value is drawn on its own, not every pixel, so that the specks are coloured: this is what
    scikit-image's ``random_noise`` does with an image in colour, and the published sets have it.
    A value that is replaced may have been 0 or 255 before.
    """

    name = "impulse_noise"
    group = "noise"
    axes = 1
    settings = Settings(
        cifar=((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),
        tiny_imagenet=((0.01,), (0.02,), (0.05,), (0.08,), (0.14,)),
        imagenet=((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return "noise_kernels:salt_and_pepper", np.uint32(2 * round(setting[0] * 2**31))


@final
class SpeckleNoise(Published):
    """Normal noise in proportion to the value: ``x + x N(0, s**2)``, on every channel value.

    A setting is the standard deviation ``s`` of the factor. Values are clipped and cut to whole
    grey levels, as published. Black stays black.

    The noise takes 16 random bits a value, and 12 more in the tails; no factor is further than
    5.29 standard deviations from 1.
    """

    name = "speckle_noise"
    group = "noise"
    axes = 1
    settings = Settings(
        cifar=((0.06,), (0.10,), (0.12,), (0.16,), (0.20,)),
        tiny_imagenet=((0.15,), (0.20,), (0.25,), (0.30,), (0.35,)),
        imagenet=((0.15,), (0.20,), (0.35,), (0.45,), (0.60,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return "noise_kernels:scale_noise", np.float32(setting[0]), *deviate_tables()
