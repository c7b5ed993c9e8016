"""Images in files of their own, in class folders, and as tiles of one picture."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import LEAST_SIDE, check_count
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_set import ImageSet
from shiftcal.datasets.labels import labels_for, read_labels
from shiftcal.errors import FileError, InputError, MissingData, require
from shiftcal.files import MOST_PIXELS, Framing, naming
from shiftcal.scores_io import member_of, named_member
from shiftcal.types import Images

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".gif")
# Pillow knows others, of which some start programs to be read.
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "PPM", "TIFF", "GIF")
_SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}


def find_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Image files below a folder, as sorted paths relative to it; hidden ones are left out.

    Raises:
        MissingData: If there is no such folder, or no image in it.
    """
    root = Path(folder)
    if not root.is_dir():
        raise MissingData(f"{root} is not a folder.")
    found: list[Path] = []
    for parent, folders, files in os.walk(root, followlinks=True):
        # A link to a folder that it is in would be followed forever.
        home = Path(parent).resolve()
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and not home.is_relative_to((home / name).resolve())
        ]
        found += [
            Path(parent, name).relative_to(root)
            for name in files
            if not name.startswith(".") and name.lower().endswith(SUFFIXES)
        ]
    if not found:
        raise MissingData(f"{root} holds no images, files ending in {', '.join(SUFFIXES)}.")
    return sorted(found, key=lambda path: path.parts)


def read_image(
    path: str | os.PathLike[str], *, resize: int | None = None, crop: int | None = None
) -> Images:
    """One image file as uint8 ``(height, width, 3)``; a grey one has three equal channels.

    Args:
        path: The file. Transparency is dropped, and of an animation the first picture is read.
        resize: Make the shorter side this long first (bilinear, with the other in proportion).
        crop: Then cut a square of this side from the centre.

    Raises:
        FileError: If the file is no image, is damaged, or is smaller than the crop.
    """
    file = Path(path)
    with naming(file):
        return np.array(Framing(resize, crop).of_picture(_decoded(_read_file(file), str(file))))


def check_size(value: int | None, *, name: str) -> None:
    """A side in pixels that makes sense."""
    if value is not None and not 8 <= value <= 10_000:
        raise InputError(f"{name} must be from 8 to 10,000 pixels; got {value}.")


def _read_file(file: Path) -> bytes:
    try:
        if file.exists() and not file.is_file():  # a pipe would block
            raise FileError(f"{file} is a folder, a pipe or the like, not an image.")
        return file.read_bytes()
    except OSError as error:
        kind = MissingData if isinstance(error, FileNotFoundError) else FileError
        raise kind(f"{file} cannot be read as an image: {error.strerror or error}.") from error


def _decoded(encoded: bytes | memoryview, name: str) -> Any:
    """A Pillow image with the channels red, green and blue."""
    pillow = require("PIL.Image", extra="images", needed_by="reading an image file")
    try:
        with pillow.open(BytesIO(encoded), formats=_FORMATS) as opened:
            width, height = opened.size
            if width * height > MOST_PIXELS:
                raise FileError(f"{name} claims more than {MOST_PIXELS:,} pixels.")
            if opened.mode.startswith(("I", "F")):
                raise FileError(f"{name} has more than 8 bits per channel. Convert it first.")
            return opened.convert("RGB")
    except FileError:
        raise
    except Exception as error:  # decoders raise whatever they like on damaged files
        unknown = isinstance(error, pillow.UnidentifiedImageError)
        reason = "unknown format" if unknown else str(error).rstrip(".")
        raise FileError(f"{name} cannot be read as an image: {reason}.") from error


class EncodedImages(ImageSet):
    """Images that have to be decoded; a container returns the bytes of each image file."""

    @abstractmethod
    def _encoded(self, index: int) -> bytes | memoryview:
        """The bytes of an image file. Called from several threads at once.

        Raises:
            FileError: If they cannot be read; the message names the image.
        """

    def _called(self, index: int) -> str:
        """What messages call the image."""
        return f"{self.ids([index])[0]} of {self.name}"

    @final
    def _image(self, index: int) -> Images:
        return np.array(self._picture(index))

    @final
    def _framed(self, index: int, framing: Framing) -> Images:
        return np.array(framing.of_picture(self._picture(index)))

    @final
    def _stored(self, index: int) -> bytes | memoryview:
        return self._encoded(index)

    def _picture(self, index: int) -> Any:
        picture = _decoded(self._encoded(index), self._called(index))
        if min(picture.size) < LEAST_SIDE:
            raise InputError(
                f"images must be at least {LEAST_SIDE} pixels high and wide; this one is "
                f"{picture.size[1]} x {picture.size[0]}."
            )
        return picture


class FileImages(EncodedImages):
    """One file per image; each is opened when it is read.

    Args:
        root: The folder that the files are below.
        files: Their paths relative to it, in order.
        name: As for every set.
        labels: As for every set.
        classes: As for every set.
        fields: As for every set.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        files: Sequence[str | os.PathLike[str]],
        *,
        name: str,
        labels: object = None,
        classes: Sequence[str] | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        self.root = Path(root).absolute()
        self.files = [os.fspath(file) for file in files]
        super().__init__(len(self.files), name=name, labels=labels, classes=classes, fields=fields)

    def _encoded(self, index: int) -> bytes:
        return _read_file(self.root / self.files[index])

    def _called(self, index: int) -> str:
        return str(self.root / self.files[index])

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """The paths relative to the folder."""
        return [Path(self.files[int(index)]).as_posix() for index in indices]


def class_folder(root: str | os.PathLike[str]) -> FileImages:
    """Images as ``<class>/<file>``, the classes in the order of their folders' names.

    That is the order of Python's ``sorted``: capitals first, ``10`` before ``2``. Images may lie
    deeper, as ``<class>/<more>/<file>``. Images directly in the folder, without folders next to
    them, make a set without labels. Hidden files and folders are left out.

    Raises:
        MissingData: If there is no image.
        FileError: If some lie in folders and some do not, if a class has none, or if the folders
            are parts such as ``train`` and ``test``.
    """
    folder = Path(root)
    files = find_images(folder)
    loose = [file for file in files if len(file.parts) == 1]
    labels, classes = None, None
    if len(loose) < len(files):
        labels = [file.parts[0] for file in files]
        classes = sorted(set(labels))
        there = {at.name for at in folder.iterdir() if at.is_dir() and not at.name.startswith(".")}
        if loose:
            raise FileError(
                f"{folder} must hold either images or one folder per class; it holds {loose[0]} "
                "and folders of images. Move one or the other away."
            )
        if len(classes) > 1 and _SPLITS.issuperset(one.lower() for one in classes):
            raise FileError(
                f"{folder} holds the parts {', '.join(classes)} of a data set, not classes. Name "
                f"one of them: {folder / classes[0]}."
            )
        if empty := sorted(there.difference(classes)):
            raise FileError(
                f"{folder} has a folder without images, {empty[0]!r}, so the numbers of the "
                "classes after it are unclear. Remove it, or put its images there."
            )
    return FileImages(folder, files, name=str(root), labels=labels, classes=classes)


def mosaic(
    path: str | os.PathLike[str],
    *,
    tile: int,
    labels: str | os.PathLike[str] | None = None,
    keep: str | None = None,
) -> ImageSet:
    """Square tiles of one lossless picture, row by row from the upper left, held in memory.

    Args:
        path: The picture.
        tile: Side of a tile in pixels.
        labels: A file of labels, such as ``labels.npz:test``. They say how many images there are;
            tiles without one may only be at the end of the last row.
        keep: ``FILE.npz:KEY``, a mask ``(n,)`` or indices of the images to keep. ``labels`` are
            those of all.

    Raises:
        MissingData: If there is no such file.
        FileError: If it is no picture, or too large.
        InputError: If tiles, labels or the mask do not fit it.
    """
    side = check_count(tile, name="tile", least=LEAST_SIDE)
    pixels = np.asarray(_decoded(_read_file(Path(path)), str(path)))
    rows, columns = pixels.shape[0] // side, pixels.shape[1] // side
    n = rows * columns if labels is None else len(read_labels(labels))
    fits = pixels.shape[:2] == (rows * side, columns * side)
    if not fits or not (rows - 1) * columns < n <= rows * columns:
        raise InputError(
            f"{path} must be made of tiles of {side} x {side} pixels with a label for every tile "
            f"but some of the last row; it is {pixels.shape[0]} x {pixels.shape[1]} and there are "
            f"{n:,} labels. Check tile and labels."
        )
    grid = pixels.reshape(rows, side, columns, side, 3).swapaxes(1, 2)
    tiles = np.ascontiguousarray(grid).reshape(-1, side, side, 3)[:n]
    images: ImageSet = ArrayImages(tiles, name=str(path))
    if labels is not None:
        images = images.relabelled(labels_for(images, labels))
    return images if keep is None else images.subset(named_member(*member_of(keep)))
