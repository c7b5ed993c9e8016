"""Bringing images to one size: resize, then cut from the centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from shiftcal._optional import require
from shiftcal._types import Images
from shiftcal.errors import InputError

# More than any camera makes; a small file that claims more is meant to fill the memory.
# Pillow warns of it from here on.
MOST_PIXELS = 89_478_485


@dataclass(frozen=True)
class Framing:
    """How images are brought to one size.

    Attributes:
        resize: Length the shorter side is brought to, the other in proportion and rounded down; or
            ``(height, width)``, which need not keep the proportion; ``None`` leaves them.
        crop: Side of the square cut from the centre after that, or ``None``.
        interpolation: ``"bilinear"`` or ``"bicubic"``, both with antialiasing.
    """

    resize: int | tuple[int, int] | None = None
    crop: int | None = None
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"

    @property
    def changes_nothing(self) -> bool:
        """Whether every image stays as it is."""
        return self.resize is None and self.crop is None

    def of_picture(self, picture: Any) -> Any:
        """A Pillow image, framed.

        Raises:
            InputError: If it is too small to be cut, or would become too large.
        """
        width, height = picture.size
        size = self._size(height, width)
        if size != (height, width):
            pillow = require("PIL.Image", extra="images", needed_by="resizing images")
            how = pillow.Resampling[self.interpolation.upper()]
            picture = picture.resize(size[::-1], how)
        if self.crop is None or size == (self.crop, self.crop):
            return picture
        top, left = self._corner(*size)
        return picture.crop((left, top, left + self.crop, top + self.crop))

    def of_images(self, images: Images) -> Images:
        """A batch ``(n, height, width, 3)``, framed; the batch itself if nothing changes.

        Raises:
            InputError: If they are too small to be cut, or would become too large.
        """
        height, width = images.shape[1:3]
        size = self._size(height, width)
        if size != (height, width):
            pillow = require("PIL.Image", extra="images", needed_by="resizing images")
            how = pillow.Resampling[self.interpolation.upper()]
            made = np.empty((len(images), *size, 3), np.uint8)
            for target, image in zip(made, images, strict=True):
                picture = pillow.fromarray(np.ascontiguousarray(image))
                target[...] = np.asarray(picture.resize(size[::-1], how))
            images = made
        if self.crop is None:
            return images
        top, left = self._corner(*size)
        return images[:, top : top + self.crop, left : left + self.crop]

    def _size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width after resizing."""
        if self.resize is None:
            return height, width
        if isinstance(self.resize, tuple):
            size = self.resize
        elif width <= height:
            size = int(self.resize * height / width), self.resize
        else:
            size = self.resize, int(self.resize * width / height)
        if size[0] * size[1] > MOST_PIXELS:
            raise InputError(
                f"an image of {height} x {width} (height x width) would become {size[0]} x "
                f"{size[1]}; more than {MOST_PIXELS:,} pixels are not made."
            )
        return size

    def _corner(self, height: int, width: int) -> tuple[int, int]:
        side = self.crop or 0
        if min(height, width) < side:
            raise InputError(
                f"images must be at least {side} pixels high and wide to be cropped to that; "
                f"got {height} x {width}. Say resize={side} or more as well."
            )
        return round((height - side) / 2), round((width - side) / 2)
