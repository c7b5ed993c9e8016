"""Images held by a Python object: a list, or a data set of another library."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_images
from shiftcal._types import Images
from shiftcal.datasets.base import ImageSet
from shiftcal.errors import FileError, InputError


class SequenceImages(ImageSet):
    """Images of an object with a length and items: Pillow images or uint8 arrays, of any sizes.

    An item is an image, or an image and its label, as a torch ``Dataset`` without transforms
    gives them. Labels are had from the object's ``targets`` if it has them, and otherwise by going
    through all items once. Items are asked for by one thread at a time.

    Args:
        items: The object.
        labels: As for every set; instead of those the object gives.
        classes: As for every set; by default the object's ``classes``.
        name: As for every set.
    """

    def __init__(
        self,
        items: Any,
        *,
        labels: object = None,
        classes: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        self._items = items
        self._lock = Lock()
        name = name or ("images" if isinstance(items, (list, tuple)) else type(items).__name__)
        n = len(items)
        self._pairs = n > 0 and _is_pair(self._item(0, name))
        if labels is None and self._pairs:
            labels = self._targets(n, name)
        names = getattr(items, "classes", None) if classes is None else classes
        if not isinstance(names, (list, tuple)) or not all(isinstance(x, str) for x in names):
            names = classes
        super().__init__(n, name=name, labels=labels, classes=names)
        self._image(0)

    def _item(self, index: int, name: str) -> Any:
        try:
            with self._lock:
                return self._items[index]
        except Exception as error:  # somebody else's code
            text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise FileError(f"item {index} of {name} could not be had ({text}).") from error

    def _image(self, index: int) -> Images:
        item = self._item(index, self.name)
        image = item[0] if self._pairs else item
        if hasattr(image, "detach"):
            image = image.detach().cpu().numpy()
        try:
            batch, layout = check_images(_without_alpha(image))
        except InputError as error:
            raise InputError(
                f"item {index} of {self.name}: {error} A data set must come without transforms "
                "that make tensors."
            ) from error
        if len(batch) != 1:
            raise InputError(f"item {index} of {self.name} must be one image; got {len(batch)}.")
        return layout.to_colour(np.asarray(batch))[0]

    def _targets(self, n: int, name: str) -> NDArray[Any]:
        told = getattr(self._items, "targets", None)
        if told is not None and len(told) == n:
            return np.asarray(told)
        return np.array([self._label(index, name) for index in range(n)])

    def _label(self, index: int, name: str) -> Any:
        item = self._item(index, name)
        if not _is_pair(item):
            raise InputError(f"item {index} of {name} must be an image and a label, as item 0 is.")
        return item[1]

    def __getstate__(self) -> dict[str, Any]:
        return {key: x for key, x in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()


def _is_pair(item: Any) -> bool:
    return isinstance(item, (tuple, list)) and len(item) == 2


def _without_alpha(image: Any) -> Any:
    """A Pillow image as it can be taken; transparency is left out, as it is of files."""
    if getattr(image, "mode", None) in ("RGBA", "LA", "PA", "RGBX"):
        return image.convert("RGB")
    return image
