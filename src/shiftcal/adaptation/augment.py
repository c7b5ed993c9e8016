"""Random changes to training images."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from shiftcal.checks import check_choice, check_count
from shiftcal.errors import require
from shiftcal.files import Framing
from shiftcal.types import Images


class Step(ABC):
    """One step on the way of an image to the network; a frozen dataclass of its numbers."""

    @abstractmethod
    def __call__(self, image: Images, rng: np.random.Generator) -> Images:
        """The image changed.

        Args:
            image: uint8 ``(height, width, 3)``; not written into, but a view of it may be given.
            rng: Where every random number comes from.
        """


_WORD = (1 << 64) - 1
# Apart from every other stream of the same seed.
_STREAM = 0x61_75_67_6D_65_6E_74


def generator(seed: int, *, step: int, domain: int, position: int) -> np.random.Generator:
    """The generator for an image: a counter whose start is said by these four numbers.

    Args:
        seed: Of the training.
        step: Which batch.
        domain: 0 for source, 1 for target.
        position: Where in the batch of all processes together the image is.
    """
    key = np.array([seed & _WORD, step], np.uint64)
    counter = np.array([0, position, domain, _STREAM], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


@final
@dataclass(frozen=True)
class HorizontalFlip(Step):
    """The mirror image, with a probability.

    Attributes:
        probability: How often.
    """

    probability: float = 0.5

    def __call__(self, image: Images, rng: np.random.Generator) -> Images:
        """See :class:`Step`."""
        return image[:, ::-1] if rng.random() < self.probability else image


@final
@dataclass(frozen=True)
class RandomCrop(Step):
    """A square whose place is uniform among those inside the image, which is at least as large.

    Attributes:
        side: Of the square, in pixels.
    """

    side: int

    def __call__(self, image: Images, rng: np.random.Generator) -> Images:
        """See :class:`Step`."""
        top, left = (int(rng.integers(size - self.side + 1)) for size in image.shape[:2])
        return image[top : top + self.side, left : left + self.side]


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
