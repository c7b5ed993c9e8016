"""A part of random area and proportion, brought to one size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from shiftcal._optional import require
from shiftcal._types import Images
from shiftcal.adaptation.feeds.augment.base import Step

_TRIES = 10


class Box(NamedTuple):
    """A rectangle of pixels."""

    top: int
    left: int
    height: int
    width: int


@final
@dataclass(frozen=True)
class RandomResizedCrop(Step):
    """A rectangle anywhere in the image, resized to a square.

    Its area is a uniform part of the image's, the logarithm of width over height is uniform, and
    so is its place. If ten such rectangles are larger than the image, it is the largest one of an
    allowed proportion at the centre. It is cut out first and then resized by Pillow, bilinear with
    antialiasing, so that no pixel outside of it counts.

    Attributes:
        side: Of the square, in pixels.
        scale: Least and greatest part of the area.
        ratio: Least and greatest width over height.
    """

    side: int
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)

    def __call__(self, image: Images, rng: np.random.Generator) -> Images:
        """See :class:`Step`."""
        top, left, height, width = self.box(image.shape[0], image.shape[1], rng)
        part = np.ascontiguousarray(image[top : top + height, left : left + width])
        pillow = require("PIL.Image", extra="images", needed_by="resizing images")
        picture = pillow.fromarray(part)
        return np.asarray(picture.resize((self.side, self.side), pillow.Resampling.BILINEAR))

    def box(self, height: int, width: int, rng: np.random.Generator) -> Box:
        """Which part of an image of this size is taken."""
        low, high = (math.log(one) for one in self.ratio)
        for _ in range(_TRIES):
            area = height * width * rng.uniform(*self.scale)
            ratio = math.exp(rng.uniform(low, high))
            h, w = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if 0 < h <= height and 0 < w <= width:
                top = int(rng.integers(height - h + 1))
                return Box(top, int(rng.integers(width - w + 1)), h, w)
        return self._at_the_centre(height, width)

    def _at_the_centre(self, height: int, width: int) -> Box:
        low, high = self.ratio
        h, w = height, width
        if width < low * height:
            h = round(width / low)
        elif width > high * height:
            w = round(height * high)
        return Box((height - h) // 2, (width - w) // 2, h, w)
