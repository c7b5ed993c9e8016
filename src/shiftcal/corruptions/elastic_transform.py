"""Elastic transform."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions._kernels.gaussian_weights import gaussian_weights
from shiftcal.corruptions.base import Corruption, Keys, Settings

# What the cosines that are left out may contribute to a displacement, root mean square, in pixels.
_LEFT_OUT = 1e-4


@final
class ElasticTransform(Corruption):
    """A random affine map, then every pixel moved by smooth random displacements.

    Three points around the centre, a third of the shorter side away from it along both axes, move
    by uniform numbers in ``(-a, a)``, and the image with them; it is mirrored on its outermost
    pixels. Of the result, pixel ``(x, y)`` takes what is at ``(x + u, y + v)``, where ``u`` and
    ``v`` are uniform noise in (-1, 1), smoothed by a Gaussian of width ``s`` that ends at three
    widths, times ``t``; there the image is mirrored on its outer edges. Both steps interpolate
    linearly.

    A setting is ``t, s, a`` and the side of the table's images, all in pixels. At another size
    they grow in proportion to the shorter side.

    Kept as published: the ImageNet table is made of 244 where 224 was meant; ``s`` of its first
    severity is 170.8 pixels, so that the displacement is nearly one shift of the whole image;
    the first severity of the other two has the affine map alone; the points are
    ``(height // 2, width // 2)`` in the order x, y, and so off the centre of an image that is
    not square; large moves can turn the image over; the distortion does not grow with the
    severity, only its detail does. Unlike the OpenCV of the time, which rounded them to 1/32
    pixel, points between pixels are taken where they are, to 1/1024.
    """

    group = "digital"
    monotone = False
    settings = Settings(
        cifar=(
            (0, 0, 32 * 0.08, 32),
            (32 * 0.05, 32 * 0.2, 32 * 0.07, 32),
            (32 * 0.08, 32 * 0.06, 32 * 0.06, 32),
            (32 * 0.1, 32 * 0.04, 32 * 0.05, 32),
            (32 * 0.1, 32 * 0.03, 32 * 0.03, 32),
        ),
        tiny_imagenet=(
            (0, 0, 64 * 0.08, 64),
            (64 * 0.05, 64 * 0.3, 64 * 0.06, 64),
            (64 * 0.1, 64 * 0.08, 64 * 0.06, 64),
            (64 * 0.1, 64 * 0.03, 64 * 0.03, 64),
            (64 * 0.16, 64 * 0.03, 64 * 0.02, 64),
        ),
        imagenet=(
            (244 * 2, 244 * 0.7, 244 * 0.1, 224),
            (244 * 2, 244 * 0.08, 244 * 0.2, 224),
            (244 * 0.05, 244 * 0.01, 244 * 0.02, 224),
            (244 * 0.07, 244 * 0.01, 244 * 0.02, 224),
            (244 * 0.12, 244 * 0.01, 244 * 0.02, 224),
        ),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        times = min(height, width) / setting[3]
        strength, sigma, jitter = (times * value for value in setting[:3])
        if strength == 0:
            return "warp", (float(jitter),)
        weights = gaussian_weights(sigma, 3)
        taps = (float(jitter), np.float32(strength))
        few = _few_cosines(weights, height, width, strength)
        if few is None:
            return "warp_and_displace", (*taps, weights)
        return "warp_and_displace_smoothly", (*taps, *few)

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels import elastic_transform_kernels

        kernel, parameters = plan
        getattr(elastic_transform_kernels, kernel)(images, out, *parameters, keys)


def _few_cosines(weights: Any, height: int, width: int, strength: float) -> Any:
    """The axes for ``cosine_fields`` if that is less work than adding up all taps, or None."""
    from shiftcal.corruptions._kernels.cosine_basis import axis_of, cosines_needed

    radius = len(weights) // 2
    rest = _LEFT_OUT * 3**0.5 / strength
    needed = [cosines_needed(weights, n, rest=rest) for n in (height, width)]
    if 2 * sum(needed) + 16 >= 3 * radius:
        return None
    down, across = (axis_of(weights, n, k=k) for n, k in zip((height, width), needed, strict=True))
    return tuple((axis.weights, axis.cosines, axis.scaled) for axis in (down, across))
