"""Defocus blur."""

from __future__ import annotations

from typing import Any, final

from shiftcal._types import Images
from shiftcal.corruptions._kernels.disk_plan import defocus_kernel, disks, softening
from shiftcal.corruptions._kernels.smoothing_plan import ONE, mirrored, neighbours, smoothing
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class DefocusBlur(Corruption):
    """Every channel correlated with a disk whose edge is softened, as a lens out of focus does.

    A setting is ``(r, s)``. The kernel is the indicator of ``x**2 + y**2 <= r**2`` on a grid of
    17 pixels (of ``2 r + 1`` if ``r`` is above 8), divided by its sum and smoothed with a
    Gaussian of standard deviation ``s`` of 3 by 3 pixels (5 by 5 if ``r`` is above 8). The image
    is reflected about its outermost pixels, and the result cut, not rounded, to whole grey levels.

    Kept as published:

    * The Gaussian is so short that an ``s`` of 0.2 or less does nothing to the disk, and below a
      radius of 1 the disk is one pixel: all kernels of the CIFAR table are 3 by 3 pixels.
    * The smoothing reflects the kernel about the edge of its grid. At radii 8 and 10 the disk
      touches it, so that the kernel sums to 1.013 and 1.011: the image becomes brighter.

    Where the published computation meets a whole grey level exactly, its kernel of 32-bit numbers
    decides whether that or the level below is the result (a disk of 29 pixels darkens images of
    one colour by 1). Here it is the level itself. Beyond that, the fixed-point sums are within
    0.05 of a level of the exact ones on photographs, and within 0.3 on any image.
    """

    group = "blur"
    random = False
    settings = Settings(
        cifar=((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        tiny_imagenet=((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        imagenet=((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        radius, sigma = setting
        if radius < 2:
            kernel = defocus_kernel(radius, sigma)
            middle = len(kernel) // 2
            edge, corner = kernel[middle, middle + 1], kernel[middle + 1, middle + 1]
            return (neighbours(edge, corner, mirrored(height, 1), mirrored(width, 1)),)
        weights = softening(radius, sigma)
        margin = len(weights) // 2 if weights.min() * ONE >= 1 else 0
        half = weights[len(weights) // 2 :][: margin + 1]
        return (
            disks(radius, sigma, margin=margin, height=height, width=width),
            smoothing(half, mirrored(height, margin), mirrored(width, margin)),
        )

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.defocus_blur_kernels import disk_images, weigh_images

        flat = (*images.shape[:2], -1)
        apply = weigh_images if len(plan) == 1 else disk_images
        apply(images.reshape(flat), out.reshape(flat), *plan)
