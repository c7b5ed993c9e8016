"""Fog."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions.base import Corruption, Keys, Settings

_WIBBLE = 100.0
# A map of this side takes 80 MB while it is made, and one of 16384 would take 1.3 GB an image.
_LARGEST = 4096


@final
class Fog(Corruption):
    """A cloudy brightness laid over the image: ``(x + c p) m / (m + c)``, ``x`` in [0, 1].

    ``m`` is the largest value of the image before the fog, and ``p`` in [0, 1] a plasma made by
    the diamond-square algorithm: a grid of one point is refined again and again, each new point
    being the mean of its four neighbours plus noise, until it has the side of the map. The noise
    is uniform in ``(-v**2, v**2)`` with ``v`` 100 at first and divided by ``d`` at every
    refinement. The result is cut to whole grey levels.

    A setting is ``c``, ``d`` and the side of the map. An image gets the top left corner of a map
    of the table's side (32, 64, and 256 for 224 pixels), or, if it does not fit, of the next
    power of two that covers its longer side, up to 4096. A longer image has its fog repeated
    every 4096 pixels, without a seam, since the map is a torus.

    Kept as published: the map is a torus, so that the left of a full one continues its right; its
    ``v`` enters squared; its range is 0 to 1 over the whole of it, so a cut-out may have less;
    and the gain ``m / (m + c)`` leaves the brightest possible value where the brightest value
    was, so that a black image stays black and everything else loses contrast.
    """

    group = "weather"
    settings = Settings(
        cifar=((0.2, 3, 32), (0.5, 3, 32), (0.75, 2.5, 32), (1, 2, 32), (1.5, 1.75, 32)),
        tiny_imagenet=((0.4, 3, 64), (0.7, 3, 64), (1, 2.5, 64), (1.5, 2, 64), (2, 1.75, 64)),
        imagenet=((1.5, 2, 256), (2, 2, 256), (2.5, 1.7, 256), (2.5, 1.5, 256), (3, 1.4, 256)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        strength, decay, side = setting
        while side < min(max(height, width), _LARGEST):
            side *= 2
        levels = int(side).bit_length() - 1
        amplitudes = (_WIBBLE / float(decay) ** np.arange(levels)) ** 2
        return amplitudes.astype(np.float32), np.float32(255 * strength)

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.fog_kernels import lay_fog

        amplitudes, strength = plan
        m, height, width = images.shape[:3]
        rows = (m, height, 3 * width)
        lay_fog(images.reshape(rows), out.reshape(rows), amplitudes, strength, keys)
