"""Images in one array, in memory or mapped from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_images
from shiftcal._types import Images
from shiftcal.datasets.base import ImageSet
from shiftcal.errors import FileError


class ArrayImages(ImageSet):
    """Images ``(n, height, width, 3)``, or without the last axis if grey.

    An array that is mapped from a file, or a part of one, is not read before it is needed, and
    another process opens the file itself instead of being sent the pixels.

    Args:
        images: uint8; not copied and not changed.
        name: As for every set.
        labels: As for every set.
        classes: As for every set.
        fields: As for every set.
    """

    def __init__(
        self,
        images: object,
        *,
        name: str = "images",
        labels: object = None,
        classes: Sequence[str] | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        self._array, _ = check_images(images)
        self._mapped = _Mapped.of(self._array)
        super().__init__(len(self._array), name=name, labels=labels, classes=classes, fields=fields)

    def _image(self, index: int) -> Images:
        return np.asarray(self._array[index])

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8]:
        first, last = int(indices[0]), int(indices[-1])
        # A stretch of the array needs no copy.
        if last - first + 1 == len(indices) and (np.diff(indices) == 1).all():
            return self._array[first : last + 1]
        return self._array[indices]

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._mapped is not None:
            del state["_array"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._mapped is not None:
            self._array = self._mapped.open()


@dataclass(frozen=True)
class _Mapped:
    """Where the pixels of an array are in a file, or of a part of one: ``images[10:20]``."""

    file: Path
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, array: NDArray[np.uint8]) -> _Mapped | None:
        """``None`` if the array is in memory, or could differ from the file."""
        root: Any = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        # In mode "c" what is written into the array does not go to the file.
        if not isinstance(root, np.memmap) or root.filename is None or root.mode == "c":
            return None
        inside = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        file = Path(root.filename)
        return cls(file, root.offset + inside, array.shape, array.strides, file.stat().st_size)

    def open(self) -> NDArray[np.uint8]:
        try:
            if self.file.stat().st_size != self.size:
                raise FileError(f"{self.file} has changed since the set was made; make it again.")
            whole = np.memmap(self.file, np.uint8, "r")
        except OSError as error:
            raise FileError(
                f"{self.file} could not be opened: {error.strerror or error}. A set of images in "
                "a file can be read only where that file is."
            ) from error
        return np.ndarray(self.shape, np.uint8, whole, self.offset, self.strides)
