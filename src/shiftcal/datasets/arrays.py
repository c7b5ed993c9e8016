"""Images in arrays, sequences and .npy or .npz files, chained and mixed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import as_text, check_images
from shiftcal.datasets.image_set import ImageSet
from shiftcal.datasets.labels import labels_for, read_labels
from shiftcal.errors import FileError, InputError
from shiftcal.files import Framing, npz_array, open_npz, read_npy
from shiftcal.types import Images, Labels

# --------------------------------------------------------------------------------------
# Images in one array, in memory or mapped from a file.
# --------------------------------------------------------------------------------------


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
        stretch = last - first + 1 == len(indices) and (np.diff(indices) == 1).all()
        return np.ascontiguousarray(
            self._array[first : last + 1] if stretch else self._array[indices]
        )

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


# --------------------------------------------------------------------------------------
# Images in an ``.npy`` or ``.npz`` file.
# --------------------------------------------------------------------------------------


def array_file(
    path: str | os.PathLike[str],
    *,
    labels: object = None,
    classes: Sequence[str] | None = None,
    name: str | None = None,
) -> ArrayImages:
    """Images ``(n, height, width, 3)`` of uint8, or without the last axis if grey.

    An ``.npy`` file is mapped. Its labels are those given, else in ``<stem>_labels.npy``, else in
    ``labels.npy`` next to it. An ``.npz`` file has the arrays ``images`` and maybe ``labels``,
    ``classes`` and ``ids``; it is mapped if ``np.savez`` wrote it, and unpacked into memory if
    ``np.savez_compressed`` did.

    Args:
        path: The file.
        labels: ``(n,)``, or the path of a file of them; instead of those that are found.
        classes: Names of the classes, instead of those in the file.
        name: As for every set; by default the path.

    Raises:
        MissingData: If there is no such file.
        FileError: If it is something else, is damaged, or holds Python objects.
    """
    file = Path(path)
    fields: dict[str, NDArray[Any]] = {}
    if file.suffix.lower() == ".npz":
        parts = _read_npz(file)
        labels = parts.get("labels") if labels is None else labels
        if classes is None and "classes" in parts:
            classes = as_text(parts["classes"], "classes").tolist()
        fields = {"id": as_text(parts["ids"], "ids")} if "ids" in parts else {}
        images = parts["images"]
    else:
        images = read_npy(file, mapped=True)
        labels = _beside(file) if labels is None else labels
    try:
        if isinstance(labels, (str, os.PathLike)):
            bare = ArrayImages(images, name=name or str(path), fields=fields)
            labels = labels_for(bare, labels)
        return ArrayImages(
            images, name=name or str(path), labels=labels, classes=classes, fields=fields
        )
    except FileError:
        raise
    except InputError as error:
        text = str(error)
        raise InputError(text if str(path) in text else f"{path}: {text}") from error


def _beside(file: Path) -> NDArray[Any] | None:
    for name in (f"{file.stem}_labels.npy", "labels.npy"):
        found = file.with_name(name)
        if found.is_file() and found.name != file.name:
            return read_labels(found)
    return None


def _read_npz(file: Path) -> dict[str, NDArray[Any]]:
    with open_npz(file) as archive:
        names = archive.files
        if "images" not in names:
            raise FileError(
                f"{file} has no array 'images'; it has {', '.join(map(repr, names)) or 'none'}."
            )
        return {
            name: npz_array(archive, name, path=file if name == "images" else None)
            for name in ("images", "labels", "classes", "ids")
            if name in names
        }


# --------------------------------------------------------------------------------------
# Several sets of images one after the other, as one.
# --------------------------------------------------------------------------------------


class ChainImages(ImageSet):
    """The images of several sets in order, with their labels and fields.

    Each is read by the set it is in. They are called by the field ``id`` if the sets have it, else
    by their number in the chain, since sets may call different images the same.

    Args:
        parts: The sets, at least one; all with labels or all without, and with the same fields
            and classes.
        name: As for every set.

    Raises:
        InputError: If there is none, or they are not alike in these.
    """

    def __init__(self, parts: Sequence[ImageSet], *, name: str) -> None:
        self.parts = tuple(parts)
        _check_alike(self.parts, name)
        self._starts = np.cumsum([0, *map(len, self.parts)])
        labels = [part.labels for part in self.parts if part.labels is not None]
        first = self.parts[0]
        super().__init__(
            int(self._starts[-1]),
            name=name,
            labels=np.concatenate(labels) if labels else None,
            classes=first.classes,
            fields={
                key: np.concatenate([part.fields[key] for part in self.parts])
                for key in first.fields
            },
        )
        sides = {part.ready_made for part in self.parts}
        self.ready_made = sides.pop() if len(sides) == 1 else None

    def _image(self, index: int) -> Images:
        part, within = self._find(index)
        return part._image(within)

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8] | None:
        owners = self._owners(indices)
        if (owners == owners[0]).all():
            part = self.parts[int(owners[0])]
            return part._images(indices - self._starts[owners[0]])
        out: NDArray[np.uint8] | None = None
        for owner in np.unique(owners):
            mine = owners == owner
            made = self.parts[int(owner)]._images(indices[mine] - self._starts[owner])
            if made is None or (out is not None and made.shape[1:] != out.shape[1:]):
                return None
            if out is None:
                out = np.empty((len(indices), *made.shape[1:]), np.uint8)
            out[mine] = made
        return out

    def _framed(self, index: int, framing: Framing) -> Images:
        part, within = self._find(index)
        return part._framed(within, framing)

    def _stored(self, index: int) -> bytes | memoryview:
        part, within = self._find(index)
        return part._stored(within)

    def _owners(self, indices: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.searchsorted(self._starts, indices, side="right") - 1

    def _find(self, index: int) -> tuple[ImageSet, int]:
        owner = int(np.searchsorted(self._starts, index, side="right")) - 1
        return self.parts[owner], index - int(self._starts[owner])


def _check_alike(parts: Sequence[ImageSet], name: str) -> None:
    if not parts:
        raise InputError(f"{name} must consist of at least one set of images; got none.")
    first = parts[0]
    for part in parts[1:]:
        for what, same in (
            ("all have labels, or none of them", (part.labels is None) == (first.labels is None)),
            ("have the same classes in the same order", part.classes == first.classes),
            ("have the same fields", part.fields.keys() == first.fields.keys()),
        ):
            if not same:
                raise InputError(
                    f"{name} must consist of sets that {what}; {first.name} and {part.name} differ "
                    "in that. relabelled(labels, classes=...) changes labels and classes."
                )


# --------------------------------------------------------------------------------------
# Pairs of images of a set, each mixed into one when it is read.
# --------------------------------------------------------------------------------------


class MixedImages(ImageSet):
    """Mixtures ``round(ratio a + (1 - ratio) b)`` of two images of another set, in uint8.

    Nothing is mixed before it is read. Images are brought to the size of the model first and mixed
    then. A mixture of which one image cannot be read cannot be read either. It is called by the
    names of both: ``"cat.png+dog.png"``.

    Args:
        whole: The set they are from.
        first: ``(m,)``, which images are ``a``.
        second: ``(m,)``, which are ``b``.
        ratio: How much of ``a`` there is, between 0 and 1.
        labels: ``(m,)``, columns of a model.
        name: As for every set.
    """

    def __init__(
        self,
        whole: ImageSet,
        first: NDArray[np.intp],
        second: NDArray[np.intp],
        *,
        ratio: float,
        labels: Labels,
        name: str,
    ) -> None:
        self.whole = whole
        self.first = first
        self.second = second
        self.ratio = ratio
        super().__init__(len(first), name=name, labels=labels)
        self.ready_made = whole.ready_made

    def _image(self, index: int) -> Images:
        a, b = self._pair(index)
        return self._mix(self.whole[a], self.whole[b], index)

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8] | None:
        a = self.whole._images(self.first[indices])
        b = None if a is None else self.whole._images(self.second[indices])
        return None if a is None or b is None else _mixed(a, b, self.ratio)

    def _framed(self, index: int, framing: Framing) -> Images:
        a, b = (self.whole._framed(each, framing) for each in self._pair(index))
        return self._mix(a, b, index)

    def _stored(self, index: int) -> bytes | memoryview:
        a, b = (self.whole._stored(each) for each in self._pair(index))
        return b"".join([repr((self.ratio, len(a))).encode(), a, b])

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """What these mixtures are called: the names of both images with a ``+`` between."""
        wanted = np.asarray(indices, np.intp)
        both = (self.whole.ids(part[wanted]) for part in (self.first, self.second))
        return [f"{a}+{b}" for a, b in zip(*both, strict=True)]

    def _pair(self, index: int) -> tuple[int, int]:
        return int(self.first[index]), int(self.second[index])

    def _mix(self, a: Images, b: Images, index: int) -> Images:
        if a.shape != b.shape:
            raise InputError(
                f"images must have one size to be mixed: {self.ids([index])[0]} are "
                f"{a.shape[0]} x {a.shape[1]} and {b.shape[0]} x {b.shape[1]}. Say resize and "
                "crop in the preprocessing of the model."
            )
        return _mixed(a, b, self.ratio)


def _mixed(a: NDArray[np.uint8], b: NDArray[np.uint8], ratio: float) -> NDArray[np.uint8]:
    part = np.multiply(a, np.float32(ratio), dtype=np.float32)
    part += np.multiply(b, np.float32(1 - ratio), dtype=np.float32)
    return np.rint(part, out=part).astype(np.uint8)


# --------------------------------------------------------------------------------------
# Images held by a Python object: a list, or a data set of another library.
# --------------------------------------------------------------------------------------


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
        targets = getattr(self._items, "targets", None)
        if targets is not None and len(targets) == n:
            return np.asarray(targets)
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
