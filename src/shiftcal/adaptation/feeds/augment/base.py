"""The contract of a random change to an image."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from shiftcal._types import Images


class Step(ABC):
    """One step on the way of an image to the network; a frozen dataclass of its numbers."""

    @abstractmethod
    def __call__(self, image: Images, rng: np.random.Generator) -> Images:
        """The image changed.

        Args:
            image: uint8 ``(height, width, 3)``; not written into, but a view of it may be given.
            rng: Where every random number comes from.
        """
