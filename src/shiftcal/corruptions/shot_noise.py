"""Shot noise."""

from __future__ import annotations

from typing import Any, final

from shiftcal._types import Images
from shiftcal.corruptions._kernels.poisson_table import alias_table, level_masses
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class ShotNoise(Corruption):
    """The counting noise of few photons: ``Poisson(c x) / c`` for every channel value.

    A setting is the number ``c`` of photons that make full brightness, so that few are severe.
    Values are clipped and cut to whole grey levels, as published. So black stays black, about
    half of the white values fall below white and none rises above, and with few photons only the
    levels ``floor(255 k / c)`` are left. The probability of every level is right to 2**-32.
    """

    group = "noise"
    settings = Settings(
        cifar=((500.0,), (250.0,), (100.0,), (75.0,), (50.0,)),
        tiny_imagenet=((250.0,), (100.0,), (50.0,), (30.0,), (15.0,)),
        imagenet=((60.0,), (25.0,), (12.0,), (5.0,), (3.0,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return alias_table(level_masses(setting[0]))

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.shot_noise_kernels import draw_levels

        flat = (len(images), -1)
        draw_levels(images.reshape(flat), out.reshape(flat), plan, keys)
