"""Snow."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images
from shiftcal.corruptions._kernels.line_taps import line_steps, line_weights
from shiftcal.corruptions._kernels.normal_table import normal_quantiles
from shiftcal.corruptions._kernels.zoom_axis import crop_length, zoom_axis
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class Snow(Corruption):
    """Falling flakes over a whitened image.

    A setting is ``(mean, deviation, zoom, threshold, radius, sigma, mix)``. A field with one
    normal deviate a pixel is enlarged by ``zoom`` as in zoom blur, set to 0 below the threshold,
    clipped to [0, 1], cut to 256 levels, and blurred as by motion blur (radius, sigma) at an angle
    uniform between -135 and -45 degrees. The image becomes
    ``mix x + (1 - mix) max(x, 1.5 grey(x) + 0.5)``, the layer and the layer turned by 180 degrees
    are added, and the sum is clipped and cut to whole levels.

    What is odd in the published sets is kept: every flake is there twice, on opposite sides of the
    middle, since the turned layer is that of the same image; and ImageMagick, which blurred the
    layer, rounds it to whole levels where everything else is cut. Severity 3 of ImageNet changes
    images no more than severity 2.

    Only the middle of the field that is enlarged is drawn. The angle is one of 4,096 equally
    likely ones, as in motion blur, and levels that are whole but for rounding errors are not cut
    to the one below: 2**-12 is added first. Heights and widths that differ are treated each by the
    rule of the published squares; lengths stay in pixels.
    """

    group = "weather"
    monotone = False
    settings = Settings(
        cifar=(
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
        tiny_imagenet=(
            (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
        ),
        imagenet=(
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        mean, deviation, zoom, threshold, radius, sigma, mix = setting
        table = (255 * (mean + deviation * normal_quantiles())).astype(np.float32)
        weights = line_weights(radius, sigma)
        dx, dy = line_steps(len(weights), -135)
        flakes = (table, _axis(height, zoom), _axis(width, zoom), np.float32(255 * threshold))
        line = (weights, dx, dy, int(-dx.min()), int(dx.max()))
        return flakes, line, np.float32(mix)

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.snow_kernels import snow_on

        flakes, line, mix = plan
        rows = (*images.shape[:2], -1)
        snow_on(images.reshape(rows), out.reshape(rows), flakes, line, mix, keys)


def _axis(length: int, zoom: float) -> tuple[NDArray[np.int64], NDArray[np.float32], int]:
    index, weight = zoom_axis(length, zoom)
    return index, weight.astype(np.float32), crop_length(length, zoom)
