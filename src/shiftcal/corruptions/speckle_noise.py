"""Speckle noise."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions._kernels.normal_cells import deviate_tables
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class SpeckleNoise(Corruption):
    """Normal noise in proportion to the value: ``x + x N(0, s**2)``, on every channel value.

    A setting is the standard deviation ``s`` of the factor. Values are clipped and cut to whole
    grey levels, as published. Black stays black.

    The noise takes 16 random bits a value, and 12 more in the tails; no factor is further than
    5.29 standard deviations from 1.
    """

    group = "noise"
    settings = Settings(
        cifar=((0.06,), (0.10,), (0.12,), (0.16,), (0.20,)),
        tiny_imagenet=((0.15,), (0.20,), (0.25,), (0.30,), (0.35,)),
        imagenet=((0.15,), (0.20,), (0.35,), (0.45,), (0.60,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return (np.float32(setting[0]), *deviate_tables())

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.speckle_noise_kernels import scale_noise

        spread, table, tail = plan
        flat = (len(images), -1)
        scale_noise(images.reshape(flat), out.reshape(flat), spread, table, tail, keys)
