"""A square from anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from shiftcal._types import Images
from shiftcal.adaptation.feeds.augment.base import Step


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
