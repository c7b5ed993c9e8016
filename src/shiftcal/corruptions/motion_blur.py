"""Motion blur."""

from __future__ import annotations

from typing import Any, final

from shiftcal._types import Images
from shiftcal.corruptions._kernels.line_taps import line_steps, line_weights
from shiftcal.corruptions.base import Corruption, Keys, Settings


@final
class MotionBlur(Corruption):
    """Blur along a straight line at a random angle, as a moving camera makes it.

    A setting is the radius ``r`` and the deviation ``s``, in pixels. Every value becomes the mean
    of the ``2 r + 1`` pixels that begin with its own and lie on a line, with the weights
    ``exp(-i**2 / (2 s**2))`` of half a Gaussian: pixel ``i`` of the line at angle ``a`` is the one
    at ``ceil(i cos a - 1/2)`` to the right and ``ceil(i sin a - 1/2)`` downwards. The angle is
    uniform between -45 and 45 degrees. Beyond the border the image is continued with its last row
    or column. That is ImageMagick's motion blur, which made the published sets.

    What is odd about it is kept. The line goes one way only, so that the image moves to the left;
    taps are whole pixels, without interpolation; and, unlike all other corruptions, the result is
    rounded, not cut, since ImageMagick wrote it.

    The angle is one of 4,096 equally likely ones, of which the steps are computed beforehand: a
    drawn angle's sine would have to be the same on every machine. The end of the line that holds
    less than 1e-5 of the weight is left out, which moves no value by more than 0.003 levels.
    """

    group = "blur"
    monotone = False  # CIFAR's severities 3 and 4 have the same deviation
    settings = Settings(
        cifar=((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        tiny_imagenet=((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        imagenet=((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        radius, sigma = setting
        weights = line_weights(radius, sigma)
        dx, dy = line_steps(len(weights), -45)
        return weights, dx, dy, int(max(dx.max(), abs(dy).max()))

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.motion_blur_kernels import blur_along_lines

        weights, dx, dy, reach = plan
        blur_along_lines(images, out, weights, dx, dy, reach, keys)
