"""The images of a batch, read and changed; what a worker does. Nothing here needs PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images
from shiftcal.adaptation.feeds.augment.draws import generator
from shiftcal.adaptation.feeds.augment.pipelines import Pipeline
from shiftcal.datasets.base import ImageSet
from shiftcal.errors import FileError


class Order(NamedTuple):
    """Images that are wanted.

    Attributes:
        step: Of which batch.
        domain: Of which set, 0 for source and 1 for target.
        first: Position of the first in the batch of all processes together.
        indices: Which ones, ``(b,)``.
    """

    step: int
    domain: int
    first: int
    indices: NDArray[np.intp]


@dataclass(frozen=True)
class Loader:
    """Makes the images of an order.

    Attributes:
        sets: Source, and target if there is one.
        pipeline: What is done to them.
        seed: Decides, with the order, what is drawn.
    """

    sets: tuple[ImageSet, ...]
    pipeline: Pipeline
    seed: int

    def __call__(self, order: Order) -> Images:
        """Images ``(b, height, width, 3)``, uint8.

        Raises:
            FileError: If one cannot be read.
        """
        read = self.sets[order.domain].read(order.indices, framing=self.pipeline.framing)
        if read.bad:
            raise FileError(
                f"{next(iter(read.bad.values()))} No image is left out of a training silently: "
                "mend or remove it, and start again."
            )
        draws = [
            generator(self.seed, step=order.step, domain=order.domain, position=order.first + i)
            for i in range(len(order.indices))
        ]
        return self.pipeline.of_images(read.images, draws)
