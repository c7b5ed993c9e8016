"""What a backbone is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shiftcal.models.preprocessing import Preprocessing

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True, eq=False)
class Backbone:
    """A network from images to features, to be trained further.

    Attributes:
        module: Takes ``(b, channels, side, side)`` and gives ``(b, n_features)``; a PyTorch module
            in training mode that belongs to nobody else.
        n_features: How many features.
        preprocessing: What images go through when the network is evaluated.
        spec: The text that makes it again; ``None`` if it was made of an object.
    """

    module: Any
    n_features: int
    preprocessing: Preprocessing
    spec: str | None = None

    @property
    def side(self) -> int | None:
        """Height and width of the images it takes; ``None`` if they are taken as they come."""
        return side_of(self.preprocessing)


def side_of(preprocessing: Preprocessing) -> int | None:
    """Height and width of images after preprocessing, if these are the same for all."""
    if preprocessing.crop is not None:
        return preprocessing.crop
    sides = preprocessing.resize
    return sides[0] if isinstance(sides, tuple) and sides[0] == sides[1] else None


def reference_preprocessing(
    *, mean: tuple[float, ...] = IMAGENET_MEAN, std: tuple[float, ...] = IMAGENET_STD
) -> Preprocessing:
    """What the reference library evaluates with.

    The whole image is brought to 256 x 256, whatever its proportion, by Pillow's default, bicubic;
    of that the centre of 224 x 224 is taken.
    """
    return Preprocessing(resize=(256, 256), crop=224, interpolation="bicubic", mean=mean, std=std)
