"""Images in files, class folders and mosaics."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import LEAST_SIDE, check_count, to_array
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_set import ImageSet, side_of_corrupted
from shiftcal.datasets.labels import labels_for, read_labels
from shiftcal.errors import FileError, InputError, MissingData, require
from shiftcal.files import MOST_PIXELS, Framing
from shiftcal.scores_io import member_of, named_member
from shiftcal.types import Images

# --------------------------------------------------------------------------------------
# Image files: finding them in a folder, and reading one.
# --------------------------------------------------------------------------------------

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".gif")
# Pillow knows others, of which some start programs to be read.
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "PPM", "TIFF", "GIF")


def find_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Image files below a folder, as sorted paths relative to it; hidden ones are left out.

    Raises:
        MissingData: If there is no such folder, or no image in it.
    """
    root = Path(folder)
    if not root.is_dir():
        raise MissingData(f"{root} is not a folder.")
    found: list[Path] = []
    above: dict[str, frozenset[str]] = {}
    for parent, folders, files in os.walk(root, followlinks=True):
        # A link to a folder it is in would be followed forever.
        inside = above.get(parent, frozenset()) | {os.path.realpath(parent)}
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and os.path.realpath(Path(parent, name)) not in inside
        ]
        above.update({str(Path(parent, name)): inside for name in folders})
        here = Path(parent).relative_to(root)
        found += [
            here / name
            for name in files
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES
        ]
    if not found:
        raise MissingData(
            f"{root} holds no images. Files ending in {', '.join(SUFFIXES)} are read."
        )
    return sorted(found, key=lambda path: path.parts)


def read_image(
    path: str | os.PathLike[str], *, resize: int | None = None, crop: int | None = None
) -> Images:
    """One image file as uint8 ``(height, width, 3)``; a grey one has three equal channels.

    Args:
        path: The file. Transparency is left out, and of an animation the first picture is read.
        resize: Make the shorter side this long first (bilinear, with the other in proportion).
        crop: Then cut a square of this side from the centre.

    Raises:
        FileError: If the file is no image, is damaged, or is smaller than the crop.
    """
    file = Path(path)
    picture = open_picture(BytesIO(_read_file(file)), name=str(file))
    try:
        return np.array(Framing(resize, crop).of_picture(picture))
    except InputError as error:
        raise FileError(f"{file}: {error}") from error


def _read_file(file: Path) -> bytes:
    try:
        if file.exists() and not file.is_file():  # a pipe would block
            raise FileError(f"{file} is a folder, a pipe or the like, not an image.")
        return file.read_bytes()
    except OSError as error:
        kind = MissingData if isinstance(error, FileNotFoundError) else FileError
        raise kind(f"{file} cannot be read as an image: {error.strerror or error}.") from error


def open_picture(source: IO[bytes], *, name: str) -> Any:
    """A decoded Pillow image with the channels red, green and blue.

    Args:
        source: The bytes of an image file.
        name: What it is called in messages.

    Raises:
        FileError: If it is no image of the kinds in :data:`SUFFIXES`, is damaged, or is too large.
    """
    pillow = require("PIL.Image", extra="images", needed_by="reading an image file")
    try:
        with pillow.open(source, formats=_FORMATS) as opened:
            width, height = opened.size
            if width * height > MOST_PIXELS:
                raise FileError(
                    f"{name} says it has {width} x {height} pixels; more than {MOST_PIXELS:,} are "
                    "not read."
                )
            if opened.mode.startswith(("I", "F")):
                raise FileError(
                    f"{name} has more than 8 bits a channel (mode {opened.mode}). Convert it to 8 "
                    "bits first."
                )
            return opened.convert("RGB")
    except FileError:
        raise
    except Exception as error:  # decoders raise whatever they like on damaged files
        unknown = isinstance(error, pillow.UnidentifiedImageError)
        reason = "cannot identify it as a kind that is read" if unknown else str(error).rstrip(".")
        raise FileError(f"{name} cannot be read as an image: {reason}.") from error


def check_size(value: int | None, *, name: str) -> None:
    """A side in pixels that can be asked for."""
    if value is not None and not 8 <= value <= 10_000:
        raise InputError(f"{name} must be from 8 to 10,000 pixels; got {value}.")


# --------------------------------------------------------------------------------------
# Images stored as the bytes of image files, wherever these are kept.
# --------------------------------------------------------------------------------------


class EncodedImages(ImageSet):
    """Images that have to be decoded. A container says where the bytes of each are.

    They are resized and cut as they come from the decoder, without an array in between.
    """

    @abstractmethod
    def _encoded(self, index: int) -> bytes | memoryview:
        """The bytes of an image file. Called from several threads at once.

        Raises:
            FileError: If they cannot be had; the message names the image.
        """

    def _called(self, index: int) -> str:
        """What the image is called in a message about it."""
        return f"{self.ids([index])[0]} of {self.name}"

    @final
    def _image(self, index: int) -> Images:
        return np.array(self._picture(index))

    @final
    def _framed(self, index: int, framing: Framing) -> Images:
        picture = self._picture(index)
        width, height = picture.size
        if min(width, height) < LEAST_SIDE:
            raise InputError(
                f"images must be at least {LEAST_SIDE} pixels high and wide; this one is "
                f"{height} x {width}."
            )
        return np.array(framing.of_picture(picture))

    @final
    def _stored(self, index: int) -> bytes | memoryview:
        return self._encoded(index)

    def _picture(self, index: int) -> Any:
        encoded = self._encoded(index)
        if not len(encoded):
            raise FileError(f"{self._called(index)} is empty: it has no bytes.")
        return open_picture(BytesIO(encoded), name=self._called(index))


# --------------------------------------------------------------------------------------
# Images in files of their own.
# --------------------------------------------------------------------------------------


class FileImages(EncodedImages):
    """One file an image; each is opened when it is read.

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


# --------------------------------------------------------------------------------------
# A folder with a folder for every class.
# --------------------------------------------------------------------------------------

_SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}


def class_folder(root: str | os.PathLike[str], *, name: str | None = None) -> FileImages:
    """Images as ``<class>/<file>``, the classes in the order of their folders' names.

    That is the order of Python's ``sorted``: capitals first, ``10`` before ``2``. Images may lie
    deeper, as ``<class>/<more>/<file>``. Images that lie directly in the folder, without folders
    alongside, make a set without labels. Hidden files and folders are left out.

    Args:
        root: The folder.
        name: As for every set; by default the folder.

    Raises:
        MissingData: If there is no image.
        FileError: If some lie in folders and some do not, if a class has
            none, or if the folders are parts such as ``train`` and ``test``.
    """
    folder = Path(root)
    files = find_images(folder)
    loose = [file for file in files if len(file.parts) == 1]
    labels, classes = None, None
    if len(loose) < len(files):
        classes = sorted({file.parts[0] for file in files})
        if loose:
            raise FileError(
                f"{folder} must hold either images or one folder a class; it holds {loose[0]} and "
                "folders of images. Move the one or the other away."
            )
        if len(classes) > 1 and _SPLITS.issuperset(one.lower() for one in classes):
            raise FileError(
                f"{folder} holds the parts {', '.join(classes)} of a data set, not classes. Name "
                f"one of them: {folder / classes[0]}."
            )
        there = {at.name for at in folder.iterdir() if at.is_dir() and not at.name.startswith(".")}
        if empty := sorted(there.difference(classes)):
            raise FileError(
                f"{folder} has a folder without images, {empty[0]!r}, so that it is unclear which "
                "number the classes after it have. Remove it, or put its images there."
            )
        place = {one: index for index, one in enumerate(classes)}
        labels = [place[file.parts[0]] for file in files]
    images = FileImages(folder, files, name=name or str(root), labels=labels, classes=classes)
    # <corruption>/<severity> is two below what `shiftcal corrupt` wrote.
    images.ready_made = side_of_corrupted(images.root, above=2)
    return images


# --------------------------------------------------------------------------------------
# Many small images in one picture, tile next to tile.
# --------------------------------------------------------------------------------------

_TILE = re.compile(r"([0-9]{1,5})(?:x([0-9]{1,5}))?")


def mosaic(
    path: str | os.PathLike[str],
    *,
    tile: int | str,
    labels: object = None,
    classes: Sequence[str] | None = None,
    keep: object = None,
    name: str | None = None,
) -> ImageSet:
    """Tiles of one picture, row by row from the upper left.

    The picture should be lossless, a PNG or such a WebP; it is decoded once and held in memory.
    Another process is sent the path and decodes it itself. As every picture it has at most
    89,478,485 pixels, which is 87,381 tiles of 32 x 32.

    Args:
        path: The picture.
        tile: Side of a tile in pixels; or text, ``"32x48"`` for height and width.
        labels: ``(n,)``, or a file of them such as ``labels.npz:test``. They say how many images
            there are: tiles at the end of the last row that have none must be empty, of one colour.
        classes: Names of the classes.
        keep: Which images to keep: a mask ``(n,)`` or indices, or ``FILE.npz:KEY``, an array of
            either. ``labels`` are those of all.
        name: As for every set; by default the path.

    Raises:
        MissingData: If there is no such file.
        FileError: If it is no picture, or too large.
        InputError: If tiles, labels or what is kept do not fit it.
    """
    if isinstance(tile, str) and (sides := _TILE.fullmatch(tile.strip().lower())):
        height, width = int(sides[1]), int(sides[2] or sides[1])
    elif isinstance(tile, str):
        raise InputError(f"tile must be a side in pixels, or HEIGHTxWIDTH; got {tile!r}.")
    else:
        height = width = tile
    for side in (height, width):
        check_count(side, name="tile", least=LEAST_SIDE)
    file = Path(path).absolute()
    tiles, columns, digest = _tiles(file, height, width)
    if labels is not None:
        from_file = isinstance(labels, (str, os.PathLike))
        n = len(read_labels(labels)) if from_file else to_array(labels, name="labels").size  # type: ignore[arg-type]
        surplus, tiles = tiles[n:], tiles[:n]
        drawn = (surplus != surplus[:, :1, :1]).any()
        if len(surplus) >= columns or drawn:
            raise InputError(
                f"{file} must have a label for every tile but empty ones, of one colour, at the "
                f"end of its last row; it has {len(tiles) + len(surplus):,} tiles, {columns} a "
                f"row, and there are {n:,} labels. Check tile and labels."
            )
    images: ImageSet = _MosaicImages(tiles, (file, height, width), digest, name=name or str(path))
    if isinstance(labels, (str, os.PathLike)):
        labels = labels_for(images, labels)
    images = images.relabelled(labels, classes=classes)
    if keep is None:
        return images
    if isinstance(keep, (str, os.PathLike)):
        file, key = member_of(keep)
        if file.suffix.lower() != ".npz":
            raise FileError(f"keep must name an array, FILE.npz:KEY; got {os.fspath(keep)!r}.")
        keep = named_member(file, key)
    mask = to_array(keep, name="keep")
    if mask.dtype == bool and (mask.shape != (len(images),) or not mask.any()):
        raise InputError(
            f"keep must say true or false of every image of {images.name}, shape "
            f"({len(images)},), and leave at least one; got shape {mask.shape}."
        )
    return images.subset(mask, name=name)


def _tiles(file: Path, height: int, width: int) -> tuple[Images, int, str]:
    """All tiles ``(n, height, width, 3)``, how many a row has, and a digest of the file."""
    encoded = _read_file(file)
    pixels = np.asarray(open_picture(BytesIO(encoded), name=str(file)))
    down, across = pixels.shape[:2]
    if down % height or across % width:
        raise InputError(
            f"{file} must be made of tiles of {height} x {width} pixels (height x width); it is "
            f"{down} x {across}, no multiple of that. Say tile=SIDE or tile=HEIGHTxWIDTH."
        )
    grid = pixels.reshape(down // height, height, across // width, width, 3).swapaxes(1, 2)
    tiles = np.ascontiguousarray(grid).reshape(-1, height, width, 3)
    return tiles, across // width, hashlib.blake2b(encoded, digest_size=16).hexdigest()


class _MosaicImages(ArrayImages):
    def __init__(
        self, tiles: Images, source: tuple[Path, int, int], digest: str, *, name: str
    ) -> None:
        super().__init__(tiles, name=name)
        self._source = source
        self._digest = digest

    def __copy__(self) -> _MosaicImages:
        # The state is for other processes: here a copy can share the pixels.
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_array"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        tiles, _, digest = _tiles(*self._source)
        if digest != self._digest:
            raise FileError(f"{self._source[0]} has changed since the set was made; make it again.")
        self._array = tiles[: len(self)]


# --------------------------------------------------------------------------------------
# From a path to the files of a set: one file, a folder of them, or a pattern with braces.
# --------------------------------------------------------------------------------------

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
# More files than any set is cut into; a slip of the finger asks for as many as it likes.
_MOST_FILES = 100_000


def files_of(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, suffix: str
) -> list[Path]:
    """The files that a user means, as absolute paths.

    Args:
        source: A file; a folder, whose files with that suffix are taken in order of their names; a
            pattern such as ``train-{000..009}.tar`` or ``{a,b}.tar``; or a list of files.
        suffix: ``".tar"`` or the like.

    Raises:
        MissingData: If none of them is there.
        FileError: If one of them is not.
    """
    if not isinstance(source, (str, os.PathLike)):
        named = [Path(one) for one in source]
    elif _BRACES.search(os.fspath(source)) and not Path(source).exists():
        named = [Path(one) for one in expand_braces(os.fspath(source))]
    elif Path(source).is_dir():
        named = in_folder(Path(source), suffix)
        if not named:
            raise MissingData(f"{source} holds no file ending in {suffix}. Check the path.")
    else:
        named = [Path(source)]
    if not named:
        raise FileError(f"there must be at least one {suffix} file; got an empty list.")
    gone = [file for file in named if not file.is_file()]
    if gone:
        what = "is not a file" if gone[0].exists() else "does not exist"
        kind = MissingData if len(gone) == len(named) else FileError
        raise kind(f"{gone[0]} {what}. Check the path.")
    return [file.absolute() for file in named]


def in_folder(folder: Path, suffix: str) -> list[Path]:
    """Files of a folder that end so and are not hidden, in order of their names."""
    return sorted(
        file
        for file in folder.iterdir()
        if file.name.lower().endswith(suffix) and not file.name.startswith(".")
    )


def expand_braces(pattern: str) -> Iterator[str]:
    """``a{08..10}b{x,y}`` as ``a08bx``, ``a08by``, ``a09bx`` ...; not one brace inside another.

    Raises:
        FileError: If a brace holds neither a range nor a list, or there are too many.
    """
    parts = _BRACES.split(pattern)
    choices: list[Sequence[str]] = []
    for inside in parts[1::2]:
        if numbers := _RANGE.fullmatch(inside):
            low, high = numbers.groups()
            # Zeros in front of either end say how many digits there are.
            width = max(len(low), len(high)) if "0" in (low[0], high[0]) else 0
            last = min(int(high), int(low) + _MOST_FILES)
            choices.append([f"{number:0{width}d}" for number in range(int(low), last + 1)])
        elif "," in inside:
            choices.append(inside.split(","))
        else:
            raise FileError(
                f"{pattern}: braces hold a range such as {{000..009}} or a list such as {{a,b}}; "
                f"got {{{inside}}}."
            )
    if math.prod(map(len, choices)) > _MOST_FILES:
        raise FileError(f"{pattern} stands for more than {_MOST_FILES:,} files.")
    for chosen in itertools.product(*choices):
        pairs = itertools.zip_longest(parts[::2], chosen, fillvalue="")
        yield "".join(itertools.chain.from_iterable(pairs))
