"""Left and right exchanged, now and then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from shiftcal._types import Images
from shiftcal.adaptation.feeds.augment.base import Step


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
