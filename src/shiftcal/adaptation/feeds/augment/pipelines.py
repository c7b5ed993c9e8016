"""What is done to images before training sees them, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shiftcal._checks import check_choice, check_count
from shiftcal._framing import Framing
from shiftcal._types import Images
from shiftcal.adaptation.feeds.augment.base import Step
from shiftcal.adaptation.feeds.augment.horizontal_flip import HorizontalFlip
from shiftcal.adaptation.feeds.augment.random_crop import RandomCrop
from shiftcal.adaptation.feeds.augment.random_resized_crop import RandomResizedCrop


@dataclass(frozen=True)
class Pipeline:
    """From images as they are stored to images of one size, still 8-bit.

    Attributes:
        framing: What is done to every image alike, as it is read.
        steps: What is drawn anew each time, in this order.
    """

    framing: Framing
    steps: tuple[Step, ...] = ()

    def of_images(self, images: Images, draws: Sequence[np.random.Generator]) -> Images:
        """Framed images ``(n, height, width, 3)`` with the random steps done to each.

        Args:
            images: Not changed.
            draws: A generator for each of them.
        """
        if not self.steps:
            return images
        return np.stack([self._changed(*pair) for pair in zip(images, draws, strict=True)])

    def _changed(self, image: Images, rng: np.random.Generator) -> Images:
        for step in self.steps:
            image = step(image, rng)
        return image


def training_transform(name: str, side: int) -> Pipeline:
    """What the reference library does to training images.

    All but ``"none"`` first bring the whole image to a square of 8/7 of the side, whatever its
    proportion (256 for 224), and flip it in half of the cases at the end. Resizing is Pillow's,
    with antialiasing, as there: bicubic for that square, which is Pillow's default, and bilinear
    for the random part. OpenCV's is several times as fast, but does not smooth what it makes
    smaller, and its bicubic kernel is another: photos differ by some grey levels.

    Args:
        name: ``"default"``, a random part of the square, resized; ``"center-crop"``, its centre, as
            for VisDA; ``"random-crop"``, a part of the final size, as for SAFN; ``"none"``, the
            whole image resized to the side, as for digits.
        side: What the network takes, in pixels.

    Raises:
        UnknownName: If there is no such name.
    """
    check_choice(name, TRANSFORMS, name="transform")
    return _MADE_BY[name](check_count(side, name="side", least=8))


def _square(side: int) -> tuple[int, int]:
    whole = round(side * 8 / 7)
    return whole, whole


def _default(side: int) -> Pipeline:
    framing = Framing(_square(side), interpolation="bicubic")
    return Pipeline(framing, (RandomResizedCrop(side), HorizontalFlip()))


def _center_crop(side: int) -> Pipeline:
    return Pipeline(Framing(_square(side), side, "bicubic"), (HorizontalFlip(),))


def _random_crop(side: int) -> Pipeline:
    framing = Framing(_square(side), interpolation="bicubic")
    return Pipeline(framing, (RandomCrop(side), HorizontalFlip()))


def _none(side: int) -> Pipeline:
    return Pipeline(Framing((side, side), interpolation="bicubic"))


_MADE_BY: dict[str, Callable[[int], Pipeline]] = {
    "default": _default,
    "center-crop": _center_crop,
    "random-crop": _random_crop,
    "none": _none,
}
TRANSFORMS = tuple(_MADE_BY)
