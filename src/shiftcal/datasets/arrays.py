"""Images in arrays, in .npy and .npz files, and in Python sequences."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import as_text, check_images
from shiftcal.datasets.image_set import ImageSet
from shiftcal.datasets.labels import read_labels
from shiftcal.errors import FileError, InputError
from shiftcal.files import naming, parsing, read_npy, read_npz
from shiftcal.types import Images

# File, offset, shape and strides of a mapped array, and the size of the file.
_Place = tuple[Path, int, tuple[int, ...], tuple[int, ...], int]
# Items of sequences are read by one thread at a time.
_ONE_READER = Lock()


class ArrayImages(ImageSet):
    """Images ``(n, height, width, 3)``, or without the last axis if grey.

    An array mapped from a file, or a part of one, is not read before it is needed, and another
    process opens the file itself instead of receiving the pixels.

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
        self._place = _place_of(self._array)
        super().__init__(len(self._array), name=name, labels=labels, classes=classes, fields=fields)

    def _image(self, index: int) -> Images:
        return np.asarray(self._array[index])

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8]:
        first, last = int(indices[0]), int(indices[-1])
        # A stretch of the array needs no copy.
        stretch = last - first + 1 == len(indices) and (np.diff(indices) == 1).all()
        return np.ascontiguousarray(
            self._array[first : last + 1] if stretch else self._array[indices]
        )

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._place is not None:
            del state["_array"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._place is not None:
            self._array = _mapped(self._place)


def _place_of(array: NDArray[np.uint8]) -> _Place | None:
    """Where the pixels are in a file; ``None`` if the array is in memory or may differ from it."""
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    # In mode "c" what is written into the array does not go to the file.
    if not isinstance(root, np.memmap) or root.filename is None or root.mode == "c":
        return None
    inside = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    file = Path(root.filename)
    return file, root.offset + inside, array.shape, array.strides, file.stat().st_size


def _mapped(place: _Place) -> NDArray[np.uint8]:
    file, offset, shape, strides, size = place
    with parsing(file, "images"):
        if file.stat().st_size != size:
            raise FileError(f"{file} has changed since the set was made; make it again.")
        return np.ndarray(shape, np.uint8, np.memmap(file, np.uint8, "r"), offset, strides)


def array_file(path: str | os.PathLike[str]) -> ArrayImages:
    """Images ``(n, height, width, 3)`` of uint8, or without the last axis if grey.

    An ``.npy`` file is mapped; its labels are in ``<stem>_labels.npy`` or ``labels.npy`` next to
    it, if there is one. An ``.npz`` file has the arrays ``images`` and maybe ``labels``,
    ``classes`` and ``ids``; it is mapped if ``np.savez`` wrote it, and unpacked into memory if
    ``np.savez_compressed`` did.

    Raises:
        MissingData: If there is no such file.
        FileError: If it is something else, is damaged, or holds Python objects.
    """
    file = Path(path)
    if file.suffix.lower() != ".npz":
        others = (file.with_name(name) for name in (f"{file.stem}_labels.npy", "labels.npy"))
        other = next((other for other in others if other.is_file() and other != file), None)
        labels = None if other is None else read_labels(other)
        with naming(file):
            return ArrayImages(read_npy(file, mapped=True), name=str(path), labels=labels)
    parts = read_npz(file, ("images", "labels", "classes", "ids"), mapped=True)
    if "images" not in parts:
        raise FileError(f"{file} must have an array 'images'; it has {', '.join(parts) or 'none'}.")
    with naming(file):
        return ArrayImages(
            parts["images"],
            name=str(path),
            labels=parts.get("labels"),
            classes=as_text(parts["classes"], "classes").tolist() if "classes" in parts else None,
            fields={"id": as_text(parts["ids"], "ids")} if "ids" in parts else None,
        )


class SequenceImages(ImageSet):
    """Images of an object with a length and items: Pillow images or uint8 arrays, of any sizes.

    An item is an image, or an image and its label, as a torch ``Dataset`` without transforms
    returns them. Labels are the object's ``targets`` if it has them; otherwise all items are read
    once. Items are read by one thread at a time. Classes are the object's ``classes``, if any.

    Args:
        items: The object.
    """

    def __init__(self, items: Any) -> None:
        self._items = items
        self.name = "images" if isinstance(items, (list, tuple)) else type(items).__name__
        n, labels = len(items), None
        first = self._item(0) if n else None
        self._pairs = isinstance(first, (tuple, list)) and len(first) == 2
        if self._pairs:
            targets = getattr(items, "targets", None)
            labels = [self._item(i)[1] for i in range(n)] if targets is None else targets
        classes = getattr(items, "classes", None)
        named = isinstance(classes, (list, tuple)) and all(isinstance(x, str) for x in classes)
        super().__init__(n, name=self.name, labels=labels, classes=classes if named else None)
        self._image(0)

    def _item(self, index: int) -> Any:
        with _ONE_READER:
            return self._items[index]

    def _image(self, index: int) -> Images:
        item = self._item(index)
        image = item[0] if self._pairs else item
        if getattr(image, "mode", None) in ("RGBA", "LA", "PA", "RGBX"):
            image = image.convert("RGB")  # transparency is dropped, as for image files
        try:
            batch, layout = check_images(image)
        except InputError as error:
            raise InputError(
                f"item {index} of {self.name}: {error} A data set must come without transforms "
                "that make tensors."
            ) from error
        return layout.to_colour(np.asarray(batch))[0]
