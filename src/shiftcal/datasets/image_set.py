"""What every image set is: a fixed order, labels if known, images a few at a time."""

from __future__ import annotations

import copy
import errno
import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
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

# --------------------------------------------------------------------------------------
# What is known of the images of a set: labels, names of classes, and other fields.
# --------------------------------------------------------------------------------------


def checked_truth(
    labels: object, classes: Sequence[str] | None, *, n: int, name: str
) -> tuple[tuple[str, ...] | None, Labels | None]:
    """The names of the classes and the labels as indices of them; either may be ``None``.

    Args:
        labels: ``(n,)``, indices, or names if the classes have names.
        classes: Their names, in the order of the indices.
        n: How many images there are.
        name: What the set is called in messages.

    Raises:
        InputError: If they do not fit one another, or are not ``n``.
    """
    try:
        names = None if classes is None else check_classes(classes, k=len(classes))
        if labels is None:
            return names, None
        given = label_indices(to_array(labels, name="labels"), names)
        return names, check_labels(given, n=n, k=len(names) if names else _at_least(given))
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def are_names(labels: object, classes: Sequence[str] | None) -> bool:
    """Whether labels are meant as names of these classes, not as numbers of columns.

    Text that is a number is a name if a class is called so, or may be.
    """
    given = plain(to_array(labels, name="labels"), "labels")
    if given.dtype.kind not in "US":
        return False
    if set(as_text(given.ravel(), "labels").tolist()) & set(classes or ()):
        return True
    try:
        label_indices(given, classes)
        label_indices(given, None)
    except InputError:  # no number, or not certainly one: for the check of the labels to reject
        return True
    return False


def _at_least(labels: NDArray[Any]) -> int:
    """Classes there must be, going by the labels alone; two if they do not say."""
    if labels.dtype.kind not in "iuf" or not labels.size or not np.isfinite(labels).all():
        return 2
    return max(int(labels.max()) + 1, 2)


def checked_field(values: object, *, n: int, name: str) -> NDArray[Any]:
    """One entry an image, ``(n,)``."""
    given = plain(to_array(values, name=name), name)
    if given.shape != (n,):
        raise InputError(f"{name} must have one entry an image, shape ({n},); got {given.shape}.")
    return given


# --------------------------------------------------------------------------------------
# Telling an image that is bad from one that the system failed to read.
# --------------------------------------------------------------------------------------

T = TypeVar("T")

# What is not there, or cannot be: another try finds it no better.
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
# Seconds before the second try: time for a connection to come back, and no burden to a run.
PAUSE = 0.25


def read_or_why(read: Callable[[], T]) -> T | FileError:
    """What a reader gives, or what is wrong with the image.

    An image is bad if its file is not there, or holds something else. If the system failed to
    read a file that is there, nothing is known of the image: it is read once more after a moment.

    Raises:
        FileError: If the system fails the second time as well.
    """
    try:
        return read()
    except FileError as error:
        if not _system_failed(error):
            return error
    time.sleep(PAUSE)
    try:
        return read()
    except FileError as error:
        if not _system_failed(error):
            return error
        raise FileError(
            f"{error} That was the second try, and says nothing of the image itself, so nothing is "
            "stored of it. Start again when it can be read, or leave it out."
        ) from error.__cause__


def _system_failed(error: FileError) -> bool:
    """Whether the system failed to read, rather than a decoder: only its errors have a number."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno is not None and cause.errno not in _NOT_THERE


# --------------------------------------------------------------------------------------
# What every set of images is: a fixed order, labels if they are known, a few read at a time.
# --------------------------------------------------------------------------------------


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
    """Images in a fixed order. Nothing is held in memory but labels and what finds the images.

    A container fills in :meth:`_image`; :meth:`_images`, :meth:`_framed` and :meth:`_stored` where
    that is faster. It must be possible to pickle it: other processes read parts of it.

    Args:
        n: How many images.
        name: What the set is called in messages, such as ``"CIFAR-10 test"``.
        labels: ``(n,)``, class indices, if they are known.
        classes: Names of the classes, if they are known.
        fields: More that is known of every image, such as ``severity`` or ``domain``: ``(n,)``
            each. One called ``id`` is what the images are called.

    Attributes:
        ready_made: The side of the squares that the images were resized and cut to when they were
            published, as for a network, if they were; a model should not resize them again.
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
        self.classes, self.labels = checked_truth(labels, classes, n=n, name=name)
        self.fields: dict[str, NDArray[Any]] = {
            key: checked_field(values, n=n, name=f"{key} of {name}")
            for key, values in (fields or {}).items()
        }

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
        """What these images are called: by the field ``id`` if there is one, else by number."""
        if "id" in self.fields:
            return [str(self.fields["id"][int(index)]) for index in indices]
        return [str(int(index)) for index in indices]

    @final
    def __getitem__(self, index: int) -> Images:
        """One image, uint8 ``(height, width, 3)``."""
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise InputError(
                f"an image of {self.name} is had by its number; got {index!r}. "
                "Several are had by read(indices), a smaller set by subset(indices)."
            )
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.name} has {len(self)} images; got index {index}.")
        return _in_colour(self._image(int(index) % len(self)))

    @final
    def read(self, indices: object, *, framing: Framing | None = None, threads: int = 1) -> Batch:
        """Images by index, all of one size.

        Args:
            indices: Which ones, ``(m,)``.
            framing: How they are brought to one size; they are left as they are by default.
            threads: How many are decoded at once.

        Raises:
            InputError: If an index is out of range, or the images are not of one size then.
            FileError: If the system fails twice to read a file that is there. A file that is not
                there or holds no image is no error: it is among the bad ones.
        """
        wanted = self._checked_indices(indices)
        framing = framing or Framing()
        whole = self._images(wanted)
        if whole is not None:
            colour = whole if whole.ndim == 4 else np.repeat(whole[..., None], 3, axis=3)
            return Batch(wanted, framing.of_images(np.asarray(colour)))
        made = _in_threads(lambda index: self._framed_or_why(index, framing), wanted, threads)
        bad = {
            int(i): image for i, image in zip(wanted, made, strict=True) if isinstance(image, str)
        }
        good = [image for image in made if not isinstance(image, str)]
        kept = np.array([i for i in wanted if int(i) not in bad], np.intp)
        self._check_one_size(kept, good)
        images = np.stack(good) if good else np.empty((0, 0, 0, 3), np.uint8)
        return Batch(kept, images, bad)

    @final
    def batches(
        self, size: int, *, framing: Framing | None = None, threads: int = 1
    ) -> Iterator[Batch]:
        """All images in order, ``size`` at a time; the last batch may be smaller."""
        step = check_count(size, name="size")
        for start in range(0, len(self), step):
            indices = np.arange(start, min(start + step, len(self)))
            yield self.read(indices, framing=framing, threads=threads)

    @final
    def digest(self, indices: object, *, threads: int = 1) -> str:
        """A digest of the content of these images, in this order; names and labels do not count.

        An image that cannot be read counts too, as one that cannot.

        Raises:
            FileError: As for :meth:`read`.
        """
        wanted = self._checked_indices(indices)
        whole = hashlib.blake2b(digest_size=16)
        for part in _in_threads(self._digest_of_one, wanted, threads):
            whole.update(part)
        return whole.hexdigest()

    @final
    def subset(self, indices: object, *, name: str | None = None) -> ImageSet:
        """Some of the images as a set of their own, in this order.

        Args:
            indices: Which ones, ``(m,)``.
            name: What it is called; by default ``"... of <name>"``.
        """
        wanted = self._checked_indices(indices)
        return _Subset(self, wanted, name or f"{len(wanted):,} of {self.name}")

    @final
    def relabelled(self, labels: object, *, classes: Sequence[str] | None = None) -> ImageSet:
        """The same images with other labels, or with none.

        Args:
            labels: ``(n,)``, class indices; ``None`` takes the labels away.
            classes: Names of the classes. By default those it has, if the labels are names; labels
                that are numbers are columns of a model, which need not be these classes, so that
                the names are dropped.
        """
        other = copy.copy(self)
        kept = self.classes if labels is None or are_names(labels, self.classes) else None
        names = kept if classes is None else classes
        other.classes, other.labels = checked_truth(labels, names, n=len(self), name=self.name)
        return other

    def _framed_or_why(self, index: int, framing: Framing) -> Images | str:
        def framed() -> Images:
            try:
                return self._framed(index, framing)
            except FileError:
                raise
            except InputError as error:
                raise FileError(f"{self.ids([index])[0]} of {self.name}: {error}") from error

        made = read_or_why(framed)
        return str(made) if isinstance(made, FileError) else made

    def _digest_of_one(self, index: int) -> bytes:
        stored = read_or_why(lambda: self._stored(index))
        content = b"unreadable" if isinstance(stored, FileError) else stored
        return hashlib.blake2b(content, digest_size=16).digest()

    def _checked_indices(self, indices: object) -> NDArray[np.intp]:
        given = to_array(indices, name="indices")
        if given.dtype == bool and given.shape == (len(self),):
            given = np.flatnonzero(given)
        if given.ndim != 1 or given.dtype.kind not in "iu" or not given.size:
            raise InputError(
                "indices must be whole numbers, one or more in a row; got shape "
                f"{given.shape} of dtype {given.dtype}."
            )
        if given.min() < 0 or given.max() >= len(self):
            raise InputError(
                f"indices must be from 0 to {len(self) - 1}, since {self.name} has {len(self):,} "
                f"images; got {given.min()} to {given.max()}."
            )
        return given.astype(np.intp, copy=False)

    def _check_one_size(self, indices: NDArray[np.intp], images: Sequence[Images]) -> None:
        for index, image in zip(indices, images, strict=True):
            if image.shape != images[0].shape:
                first, this = self.ids([int(indices[0]), int(index)])
                raise InputError(
                    f"images of {self.name} must have one size to go through a model together: "
                    f"{first} is {images[0].shape[0]} x {images[0].shape[1]}, {this} is "
                    f"{image.shape[0]} x {image.shape[1]}. Say resize and crop in the "
                    "preprocessing of the model, on the command line ?resize=256&crop=224."
                )


class _Subset(ImageSet):
    def __init__(self, whole: ImageSet, indices: NDArray[np.intp], name: str) -> None:
        self.whole = whole
        self.indices = indices
        super().__init__(
            len(indices),
            name=name,
            labels=None if whole.labels is None else whole.labels[indices],
            classes=whole.classes,
            fields={key: values[indices] for key, values in whole.fields.items()},
        )
        self.ready_made = whole.ready_made

    def _image(self, index: int) -> Images:
        return self.whole._image(int(self.indices[index]))

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8] | None:
        return self.whole._images(self.indices[indices])

    def _framed(self, index: int, framing: Framing) -> Images:
        return self.whole._framed(int(self.indices[index]), framing)

    def _stored(self, index: int) -> bytes | memoryview:
        return self.whole._stored(int(self.indices[index]))

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        return self.whole.ids(self.indices[np.asarray(indices, np.intp)])


def _in_colour(image: NDArray[np.uint8]) -> Images:
    batch, layout = check_images(image)
    return layout.to_colour(np.asarray(batch))[0]


def _in_threads(work: Any, indices: NDArray[np.intp], threads: int) -> list[Any]:
    if check_count(threads, name="threads") == 1 or len(indices) == 1:
        return [work(int(index)) for index in indices]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, indices.tolist()))


# --------------------------------------------------------------------------------------
# Images that were already brought to the size a network takes, when they were written.
# --------------------------------------------------------------------------------------

# What ``shiftcal corrupt`` writes alongside its images.
_NAME = "corrupted.json"


def side_of_corrupted(folder: Path, *, above: int = 0, published: int | None = None) -> int | None:
    """The side that the images of a folder were cut to; ``None`` if they were not.

    Args:
        folder: The folder that ``shiftcal corrupt`` wrote, or one in it.
        above: How many folders above may be the one it wrote.
        published: The side if ``shiftcal corrupt`` did not write it.
    """
    places = (folder, *folder.absolute().parents[:above])
    file = next((place / _NAME for place in places if (place / _NAME).is_file()), None)
    if file is None:
        return published
    try:
        crop = json.loads(file.read_text("utf-8")).get("crop")
    except (OSError, ValueError, RecursionError, AttributeError):
        return None
    return crop if type(crop) is int and crop > 0 else None
