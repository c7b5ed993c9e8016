"""Images of one size that are read from a file as a whole, and read again by other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images
from shiftcal.datasets.base import ImageSet
from shiftcal.errors import FileError

DIGITS = tuple("0123456789")


class PixelImages(ImageSet):
    """Images that one file holds as pixels, in memory or mapped from it.

    Args:
        pixels: uint8 ``(n, height, width)`` if grey, or with a last axis of 3.
        again: Gives the same pixels in another process, which is sent this instead of them.
        name: As for every set.
        labels: As for every set.
        classes: As for every set.
    """

    def __init__(
        self,
        pixels: NDArray[np.uint8],
        *,
        again: Callable[[], NDArray[np.uint8]],
        name: str,
        labels: object,
        classes: Sequence[str] = DIGITS,
    ) -> None:
        self._pixels = pixels
        self._again = again
        super().__init__(len(pixels), name=name, labels=labels, classes=classes)

    def _image(self, index: int) -> Images:
        return np.asarray(self._pixels[index])

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8]:
        first, last = int(indices[0]), int(indices[-1])
        # A stretch of the array needs no copy.
        if last - first + 1 == len(indices) and (np.diff(indices) == 1).all():
            return self._pixels[first : last + 1]
        return self._pixels[indices]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_pixels"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pixels = self._again()
        if len(self._pixels) != len(self):
            raise FileError(
                f"{self.name} had {len(self):,} images when it was opened and has "
                f"{len(self._pixels):,} now: its file was changed. Open it again."
            )


def check_same_number(images: int, labels: int, *, name: str) -> None:
    """Refuse a set whose files of images and labels do not go together.

    Raises:
        FileError: If they differ.
    """
    if images != labels:
        raise FileError(
            f"{name} must have one label an image; its files hold {images:,} images and "
            f"{labels:,} labels. Fetch both again."
        )
