"""Spatter."""

from __future__ import annotations

import functools
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images
from shiftcal.corruptions._kernels.gaussian_weights import gaussian_weights
from shiftcal.corruptions._kernels.normal_table import normal_quantiles
from shiftcal.corruptions.base import Corruption, Keys, Settings

_TRUNCATE = 4  # radius of the smoothing in standard deviations, as in scikit-image


@final
class Spatter(Corruption):
    """Drops of water (severity 1 to 3) or mud (4 and 5) on the lens.

    A setting is ``(mean, deviation, sigma, least, strength, mud)``. A field of independent normal
    values with that mean and deviation is smoothed by a Gaussian of standard deviation ``sigma``
    in pixels, its border repeated; the image is wet where the field reaches ``least``.

    Water: the field in whole grey levels, 0 where dry; its edges (Canny, thresholds 50 and 150);
    the distance to them, at most 20, averaged over 3 x 3 pixels and cut to whole numbers; equalised
    to 0 .. 255; embossed with ``[[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]``; averaged once more; times
    the field, divided by its maximum: ``x + strength m (175, 238, 238) / 255``.

    Mud: where the field exceeds ``least``, smoothed by a Gaussian of standard deviation
    ``strength``, and 0 where that is below 0.8: ``x (1 - m) + m (63, 42, 20) / 255``.

    As published: a field above 1 begins anew at 0 when it becomes a grey level, which opens a
    hole in the drop (at severity 3 of the smaller tables, in one image of 32 pixels out of six
    and in one of 64 out of three); the brightest drop has the same light in every image, whatever
    its size. Where nothing is wet the published generator divides by zero; here the image stays
    as it is. All lengths are in pixels, so images of other sizes and shapes than the table's have
    drops of the same size.
    """

    group = "weather"
    monotone = False
    settings = Settings(
        cifar=(
            (0.62, 0.1, 0.7, 0.7, 0.5, 0),
            (0.65, 0.1, 0.8, 0.7, 0.5, 0),
            (0.65, 0.3, 1, 0.69, 0.5, 0),
            (0.65, 0.1, 0.7, 0.69, 0.6, 1),
            (0.65, 0.1, 0.5, 0.68, 0.6, 1),
        ),
        tiny_imagenet=(
            (0.62, 0.1, 0.7, 0.7, 0.6, 0),
            (0.65, 0.1, 0.8, 0.7, 0.6, 0),
            (0.65, 0.3, 1, 0.69, 0.6, 0),
            (0.65, 0.1, 0.7, 0.68, 0.6, 1),
            (0.65, 0.1, 0.5, 0.67, 0.6, 1),
        ),
        imagenet=(
            (0.65, 0.3, 4, 0.69, 0.6, 0),
            (0.65, 0.3, 3, 0.68, 0.6, 0),
            (0.65, 0.3, 2, 0.68, 0.5, 0),
            (0.65, 0.3, 1, 0.65, 1.5, 1),
            (0.67, 0.4, 1, 0.65, 1.5, 1),
        ),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        mean, deviation, sigma, least, strength, mud = setting
        table = (255 * deviation * normal_quantiles()).astype(np.float32)
        levels = (np.float32(255 * mean), np.float32(255 * least))
        last = _summing_to_one(strength) if mud else np.float32(strength)
        return table, gaussian_weights(sigma, _TRUNCATE), levels, last

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.spatter_kernels import muddy, splash

        rows = (*images.shape[:2], -1)
        table, weights, levels, last = plan
        paint = muddy if isinstance(last, np.ndarray) else splash
        paint(images.reshape(rows), out.reshape(rows), table, weights, levels, last, keys)


@functools.cache
def _summing_to_one(sigma: float) -> NDArray[np.float32]:
    """Gaussian weights which the kernel, adding in float32, makes exactly 1 of ones.

    Otherwise all of a mud blot would be a level too dark when values are cut.
    """
    weights = gaussian_weights(sigma, _TRUNCATE)
    middle = len(weights) // 2
    while (total := _added(weights)) != 1:
        weights[middle] = np.nextafter(weights[middle], np.float32(2 if total < 1 else 0))
    return weights


def _added(weights: NDArray[np.float32]) -> np.float32:
    middle = len(weights) // 2
    total = weights[middle]
    for weight in weights[middle + 1 :]:
        total = total + np.float32(2) * weight
    return total
