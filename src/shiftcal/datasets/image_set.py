"""What every image set is: a fixed order, labels if known, images a few at a time."""

from __future__ import annotations

import copy
import errno
import hashlib
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import (
    as_text,
    check_classes,
    check_count,
    check_images,
    check_labels,
    label_indices,
    plain,
    to_array,
)
from shiftcal.errors import FileError, InputError
from shiftcal.files import Framing
from shiftcal.types import Images, Labels

T = TypeVar("T")
# Errors of the system that say that a file is missing; any other says nothing about the image.
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


@dataclass(frozen=True, eq=False)
class Batch:
    """Images that were read together.

    Attributes:
        indices: Which ones, ``(m,)``; those that could not be read are not among them.
        images: ``(m, height, width, 3)``, uint8.
        bad: What was wrong with each of the others, by index.
    """

    indices: NDArray[np.intp]
    images: Images
    bad: Mapping[int, str] = field(default_factory=dict)


class ImageSet(ABC):
    """Images in a fixed order. Only labels and what finds the images are held in memory.

    A container implements :meth:`_image`; :meth:`_images`, :meth:`_framed` and :meth:`_stored`
    where that is faster. It must be possible to pickle it: other processes read parts of it.

    Args:
        n: Number of images.
        name: What messages call the set, such as ``"CIFAR-10 test"``.
        labels: ``(n,)``, class indices, if they are known.
        classes: Names of the classes, if they are known.
        fields: More that is known of every image, such as ``severity`` or ``domain``: ``(n,)``
            each. The field ``id`` holds the names of the images.

    Attributes:
        ready_made: Side of the squares that the images were resized and cropped to when they were
            published, if they were; a model should not resize them again.
    """

    ready_made: int | None = None

    def __init__(
        self,
        n: int,
        *,
        name: str,
        labels: object = None,
        classes: Sequence[str] | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        if n < 1:
            raise InputError(f"{name} must hold at least one image; got none.")
        self._n = n
        self.name = name
        self.classes, self.labels = self._checked_labels(labels, classes)
        self.fields: dict[str, NDArray[Any]] = {}
        for key, values in (fields or {}).items():
            self.fields[key] = plain(to_array(values, name=key), key)
            if self.fields[key].shape != (n,):
                raise InputError(f"{key} of {name} must have one entry per image, shape ({n},).")

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        labels = "no labels" if self.labels is None else "labels"
        return f"<{self.name}: {len(self):,} images, {labels}>"

    @abstractmethod
    def _image(self, index: int) -> Images:
        """One image as stored, uint8 ``(height, width, 3)`` or ``(height, width)`` if grey.

        Called from several threads at once.

        Raises:
            FileError: If it cannot be read; the message names the file.
        """

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8] | None:
        """All these images in one array, ``(m, height, width[, 3])``, if stored so; or ``None``."""
        return None

    def _framed(self, index: int, framing: Framing) -> Images:
        """One image in colour, framed.

        Raises:
            FileError: If it cannot be read.
            InputError: If it cannot be framed so.
        """
        return framing.of_images(_in_colour(self._image(index))[None])[0]

    def _stored(self, index: int) -> bytes | memoryview:
        """The bytes an image is stored as, by which a change is noticed."""
        image = np.ascontiguousarray(self._image(index))
        return repr(image.shape).encode() + image.tobytes()

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """Names of these images: the field ``id`` if there is one, else their numbers."""
        names = self.fields.get("id")
        return [str(int(index) if names is None else names[int(index)]) for index in indices]

    @final
    def __getitem__(self, index: int) -> Images:
        """One image, uint8 ``(height, width, 3)``."""
        if not -len(self) <= operator.index(index) < len(self):
            raise IndexError(f"{self.name} has {len(self)} images; got index {index}.")
        return _in_colour(self._image(int(index) % len(self)))

    @final
    def read(self, indices: object, *, framing: Framing | None = None, threads: int = 1) -> Batch:
        """Images by index, all of one size.

        Args:
            indices: Which ones, ``(m,)``.
            framing: How they are brought to one size; default: as they are.
            threads: How many are decoded at once.

        Raises:
            InputError: If an index is out of range, or the images differ in size.
            FileError: If the system fails to read a file that exists. A file that is missing or
                holds no image is no error: it is among the bad ones.
        """
        wanted = self._checked_indices(indices)
        framing = framing or Framing()
        whole = self._images(wanted)
        if whole is not None:
            colour = whole if whole.ndim == 4 else np.repeat(whole[..., None], 3, axis=3)
            return Batch(wanted, framing.of_images(np.asarray(colour)))
        results = self._each(lambda index: self._framed(index, framing), wanted, threads)
        found = list(zip(wanted.tolist(), results, strict=True))
        bad = {index: str(image) for index, image in found if isinstance(image, InputError)}
        good = {index: image for index, image in found if not isinstance(image, InputError)}
        sizes = {"{} x {}".format(*image.shape): index for index, image in good.items()}
        if len(sizes) > 1:
            named = [f"{self.ids([index])[0]} is {size}" for size, index in sizes.items()]
            raise InputError(
                f"images of {self.name} must have one size to go through a model together: "
                f"{named[0]}, {named[1]}. Set resize and crop in the preprocessing of the model, "
                "on the command line ?resize=256&crop=224."
            )
        kept = np.array([index for index in wanted if int(index) not in bad], np.intp)
        images = [good[index] for index in kept.tolist()]
        return Batch(kept, np.stack(images) if images else np.empty((0, 0, 0, 3), np.uint8), bad)

    @final
    def digest(self, indices: object, *, threads: int = 1) -> str:
        """A digest of the content of these images, in this order; names and labels do not count.

        All images that cannot be read count as the same content.

        Raises:
            FileError: As for :meth:`read`.
        """
        whole = hashlib.blake2b(digest_size=16)
        for stored in self._each(self._stored, self._checked_indices(indices), threads):
            content = b"unreadable" if isinstance(stored, InputError) else stored
            whole.update(hashlib.blake2b(content, digest_size=16).digest())
        return whole.hexdigest()

    @final
    def subset(self, indices: object, *, name: str | None = None) -> ImageSet:
        """Some of the images as a set of their own, in this order.

        Args:
            indices: Which ones, ``(m,)``.
            name: Of the new set; default: ``"... of <name>"``.
        """
        wanted = self._checked_indices(indices)
        return _View((self,), wanted, name or f"{len(wanted):,} of {self.name}")

    @final
    def relabelled(self, labels: object, *, classes: Sequence[str] | None = None) -> ImageSet:
        """The same images with other labels, or with none.

        Args:
            labels: ``(n,)``, class indices or names; ``None`` removes the labels.
            classes: Names of the classes. Default: the set's own if the labels are names. Numbers
                are columns of a model, which need not be these classes, so the names are dropped.
        """
        other = copy.copy(self)
        if classes is None and (labels is None or _are_names(labels, self.classes)):
            classes = self.classes
        other.classes, other.labels = self._checked_labels(labels, classes)
        return other

    def _checked_labels(
        self, labels: object, classes: Sequence[str] | None
    ) -> tuple[tuple[str, ...] | None, Labels | None]:
        """Names of the classes, and labels as indices among them; either may be ``None``."""
        try:
            names = None if classes is None else check_classes(classes, k=len(classes))
            if labels is None:
                return names, None
            indices = label_indices(to_array(labels, name="labels"), names)
            finite = indices[np.isfinite(indices)] if indices.dtype.kind in "iuf" else indices[:0]
            k = len(names) if names else int(finite.max(initial=1)) + 1
            return names, check_labels(indices, n=len(self), k=k)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from error

    def _each(
        self, read: Callable[[int], T], indices: NDArray[np.intp], threads: int
    ) -> list[T | InputError]:
        """What ``read`` returns for every image, or what is wrong with the image."""

        def one(index: int) -> T | InputError:
            try:
                return read(index)
            except FileError as error:
                cause = error.__cause__
                if isinstance(cause, OSError) and cause.errno not in (None, *_ABSENT):
                    raise  # the disk or the network failed, not the image
                return error
            except InputError as error:
                return InputError(f"{self.ids([index])[0]} of {self.name}: {error}")

        if check_count(threads, name="threads") == 1 or len(indices) == 1:
            return [one(int(index)) for index in indices]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, indices.tolist()))

    def _checked_indices(self, indices: object) -> NDArray[np.intp]:
        given = to_array(indices, name="indices")
        if given.dtype == bool and given.shape == (len(self),):
            given = np.flatnonzero(given)
        if given.ndim != 1 or given.dtype.kind not in "iu" or not given.size:
            raise InputError(
                f"indices must be one or more whole numbers, shape (m,), or a mask ({len(self)},); "
                f"got shape {given.shape} of dtype {given.dtype}."
            )
        if given.min() < 0 or given.max() >= len(self):
            raise InputError(
                f"indices must be from 0 to {len(self) - 1}, since {self.name} has {len(self):,} "
                f"images; got {given.min()} to {given.max()}."
            )
        return given.astype(np.intp, copy=False)


def _are_names(labels: object, classes: Sequence[str] | None) -> bool:
    """Whether labels are names of classes. A number is one if a class is called so."""
    given = plain(to_array(labels, name="labels"), "labels")
    if given.dtype.kind not in "US":
        return False
    words = set(as_text(given.ravel(), "labels").tolist())
    return bool(words & set(classes or ())) or not all(map(str.isdecimal, words))


def _in_colour(image: NDArray[np.uint8]) -> Images:
    batch, layout = check_images(image)
    return layout.to_colour(np.asarray(batch))[0]


class _View(ImageSet):
    """Rows of several sets, counted through them in order."""

    def __init__(self, parts: Sequence[ImageSet], rows: NDArray[np.intp], name: str) -> None:
        self.parts = tuple(parts)
        self.rows = rows
        self._starts = np.cumsum([0, *map(len, self.parts)])
        first = self.parts[0]
        labels = [part.labels for part in self.parts if part.labels is not None]
        super().__init__(
            len(rows),
            name=name,
            labels=np.concatenate(labels)[rows] if labels else None,
            classes=first.classes,
            fields={
                key: np.concatenate([part.fields[key] for part in self.parts])[rows]
                for key in first.fields
            },
        )
        if all(part.ready_made == first.ready_made for part in self.parts):
            self.ready_made = first.ready_made

    def _find(self, index: int) -> tuple[ImageSet, int]:
        row = int(self.rows[index])
        owner = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self.parts[owner], row - int(self._starts[owner])

    def _image(self, index: int) -> Images:
        part, within = self._find(index)
        return part._image(within)

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8] | None:
        rows = self.rows[indices]
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        joined = None
        for owner in np.unique(owners).tolist():
            mine = owners == owner
            piece = self.parts[owner]._images(rows[mine] - self._starts[owner])
            if piece is None or mine.all():
                return piece
            if joined is None:
                joined = np.empty((len(rows), *piece.shape[1:]), np.uint8)
            if joined.shape[1:] != piece.shape[1:]:
                return None
            joined[mine] = piece
        return joined

    def _framed(self, index: int, framing: Framing) -> Images:
        part, within = self._find(index)
        return part._framed(within, framing)

    def _stored(self, index: int) -> bytes | memoryview:
        part, within = self._find(index)
        return part._stored(within)

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """Names of these images; those of several sets only if they have the field ``id``."""
        if len(self.parts) > 1:
            return super().ids(indices)
        return self.parts[0].ids(self.rows[np.asarray(indices, np.intp)])


class ChainImages(_View):
    """The images of several sets in order, with their labels and fields.

    Their names are those in the field ``id`` if the sets have it, else their numbers in the chain,
    since two sets may give different images the same name.

    Args:
        parts: The sets, at least one; all with labels or all without, and with the same fields
            and classes.
        name: As for every set.

    Raises:
        InputError: If there is none, or they differ in these.
    """

    def __init__(self, parts: Sequence[ImageSet], *, name: str) -> None:
        kinds = [(part.labels is None, part.classes, part.fields.keys()) for part in parts]
        if not parts or any(kind != kinds[0] for kind in kinds):
            raise InputError(
                f"the sets of {name} must have the same classes and fields, and all or none "
                "labels. relabelled(labels, classes=...) changes labels and classes."
            )
        super().__init__(parts, np.arange(sum(map(len, parts))), name)


class MixedImages(ImageSet):
    """Mixtures ``round(ratio a + (1 - ratio) b)`` of two images of another set, in uint8.

    Images are mixed when they are read, after they were brought to the size of the model. The name
    of a mixture is made of both names: ``"cat.png+dog.png"``.

    Args:
        whole: The set they are from.
        first: ``(m,)``, which images are ``a``.
        second: ``(m,)``, which are ``b``.
        ratio: Share of ``a``, between 0 and 1.
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
        self.first = first
        self.second = second
        self.ratio = ratio
        self._pair = (whole.subset(first), whole.subset(second))
        super().__init__(len(first), name=name, labels=labels)
        self.ready_made = whole.ready_made

    def _image(self, index: int) -> Images:
        return self._mix(*(part[index] for part in self._pair))

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8] | None:
        a, b = (part._images(indices) for part in self._pair)
        return None if a is None or b is None else self._mix(a, b)

    def _framed(self, index: int, framing: Framing) -> Images:
        return self._mix(*(part._framed(index, framing) for part in self._pair))

    def _stored(self, index: int) -> bytes | memoryview:
        a, b = (part._stored(index) for part in self._pair)
        return b"".join([repr((self.ratio, len(a))).encode(), a, b])

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """Names of these mixtures: those of both images with a ``+`` between."""
        both = (part.ids(indices) for part in self._pair)
        return [f"{a}+{b}" for a, b in zip(*both, strict=True)]

    def _mix(self, a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if a.shape != b.shape:
            raise InputError(
                "images must have one size to be mixed; these differ. Set resize and crop in the "
                "preprocessing of the model."
            )
        mixed = np.multiply(a, np.float32(self.ratio), dtype=np.float32)
        mixed += np.multiply(b, np.float32(1 - self.ratio), dtype=np.float32)
        return np.rint(mixed, out=mixed).astype(np.uint8)
