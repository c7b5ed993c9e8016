"""Images in files: in class folders, as tiles of one picture, in Parquet files and tar shards."""

from __future__ import annotations

import json
import os
import re
import tarfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import LEAST_SIDE, check_count
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.image_set import ImageSet
from shiftcal.datasets.labels import labels_for, read_labels
from shiftcal.errors import FileError, InputError, MissingData, require
from shiftcal.files import MOST_PIXELS, Framing, naming, open_parquet, parsing
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


# --------------------------------------------------------------------------------------
# Parquet files, as Hugging Face stores images, and tar shards, as WebDataset does.
# --------------------------------------------------------------------------------------

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_ONE_READER = Lock()
# The folder and the name up to its first dot, then the rest.
_NAME = re.compile(r"((?:.*/)?[^./][^./]*)\.([^/]+)")


def _files_of(source: Source, suffix: str) -> list[Path]:
    """A file, the files of a folder in order of their names, or a list of files; all absolute.

    Raises:
        MissingData: If one is not there.
    """
    if not isinstance(source, (str, os.PathLike)):
        files = [Path(one) for one in source]
    elif Path(source).is_dir():
        files = sorted(x for x in Path(source).glob(f"*{suffix}") if x.name[0] != ".")
    else:
        files = [Path(source)]
    if not files or not all(map(Path.is_file, files)):
        absent = next((file for file in files if not file.is_file()), f"a {suffix} in {source}")
        raise MissingData(f"{absent} does not exist or is not a file. Check the path.")
    return [file.absolute() for file in files]


def _named_labels(
    labels: Sequence[int | str | None], classes: Sequence[str] | None, name: str
) -> tuple[Sequence[str] | None, NDArray[Any] | None]:
    """The names of the classes and the labels of a container; either may be ``None``.

    Labels that are all names give the classes, sorted, unless these are known. ``-1`` for all is
    how the labels of a test set are kept secret: there are none then.

    Raises:
        FileError: If only some images have a label, or names and numbers are mixed.
    """
    if all(label in (None, -1) for label in labels):
        return classes, None
    kinds = {type(label) for label in labels}
    if len(kinds) > 1:
        raise FileError(
            f"{name}: either no image has a label, or all have a number, or all have a name; "
            f"there are {', '.join(sorted(kind.__name__ for kind in kinds))}."
        )
    if kinds == {str} and classes is None:
        classes = sorted({str(label) for label in labels})
    return classes, np.array(labels)


class ParquetImages(EncodedImages):
    """A table with a column of image files, in one file or a folder of them.

    A group of rows is read at a time and the last four are kept, so memory is bounded by the size
    of the groups the file was written with. Classes are those the file names (Hugging Face's
    ``ClassLabel``), else the sorted names where labels are text.

    Args:
        source: A file, a folder of ``.parquet`` files, or a list of files.
        image: The column of images: bytes, or ``{bytes, path}``. Default: found by its type.
        label: The column of labels. Default: found by its type or name.
    """

    def __init__(
        self, source: Source, *, image: str | None = None, label: str | None = None
    ) -> None:
        self.files = _files_of(source, ".parquet")
        name = str(source) if isinstance(source, (str, os.PathLike)) else "Parquet files"
        self._groups: list[tuple[int, int]] = []
        chosen: list[tuple[str, str | None, tuple[str, ...] | None]] = []
        sizes: list[int] = []
        labels: list[int | str | None] = []
        self._starts = [0]
        for number, file in enumerate(self.files):
            with open_parquet(file) as table:
                chosen.append(_columns(table.schema_arrow, image, label, str(file)))
                if chosen[-1] != chosen[0]:
                    raise FileError(f"{file} must have the columns and classes of the first file.")
                facts, column = table.metadata, chosen[0][1]
                for group in range(facts.num_row_groups):
                    self._groups.append((number, group))
                    sizes.append(facts.row_group(group).num_rows)
                cells = table.read(columns=[column])[column] if column else None
                labels += [None] * facts.num_rows if cells is None else cells.to_pylist()
                self._starts.append(len(labels))
        if not labels:
            raise FileError(f"{name} holds no images: it has no rows.")
        self._column, _, classes = chosen[0]
        self._ends = np.cumsum(sizes, dtype=np.int64)
        names, indices = _named_labels(labels, classes, name)
        super().__init__(len(labels), name=name, labels=indices, classes=names)

    def _encoded(self, index: int) -> memoryview:
        group = int(np.searchsorted(self._ends, index, side="right"))
        which, within = self._groups[group]
        path = self.files[which]
        # One thread reads a group while the others wait for it; they decode side by side.
        with _ONE_READER, parsing(path, "a Parquet file"):
            column = _row_group(path, path.stat().st_mtime_ns, within, self._column)
        cell = column[index - int(self._ends[group]) + len(column)]
        if hasattr(column.type, "get_field_index") and cell.is_valid:
            cell = cell["bytes"]
        if not cell.is_valid:
            raise FileError(
                f"{self._called(index)} has no bytes. Write the data set with its images embedded; "
                "paths in it are not followed."
            )
        return memoryview(cell.as_buffer())

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """The file and the row in it: ``test.parquet[12]``."""
        owners = np.searchsorted(self._starts, np.asarray(indices), side="right") - 1
        return [
            f"{self.files[owner].name}[{int(index) - self._starts[owner]}]"
            for owner, index in zip(owners, indices, strict=True)
        ]


@lru_cache(maxsize=4)
def _row_group(path: Path, _changed: int, group: int, column: str) -> Any:
    """A column of a group of rows; the last four are kept, unless their file has changed."""
    with open_parquet(path) as file:
        cells = file.read_row_group(group, [column])[column].combine_chunks()
        cells.validate(full=True)
        return cells


def _columns(
    schema: Any, image: str | None, label: str | None, name: str
) -> tuple[str, str | None, tuple[str, ...] | None]:
    """The column of images, the column of labels, and the names of the classes."""
    try:  # what Hugging Face writes about the columns
        features = dict(json.loads(schema.metadata[b"huggingface"])["info"]["features"])
    except (ValueError, KeyError, TypeError):
        features = {}
    kinds = {key: x.get("_type") for key, x in features.items() if isinstance(x, dict)}
    columns, holders = schema.names, [field.name for field in schema if _holds_bytes(field.type)]
    images = [image] if image else [x for x in holders if kinds.get(x) == "Image"] or holders
    if len(images) != 1 or images[0] not in holders:
        raise FileError(
            f"{name} must have one column with the bytes of image files, which image=NAME names; "
            f"of its columns {', '.join(columns)} these have bytes: {', '.join(holders) or 'none'}."
        )
    labels = [label] if label else [x for x in columns if kinds.get(x) == "ClassLabel"]
    labels = labels or [x for x in columns if x in ("label", "labels")]
    if len(labels) > 1 or not set(labels).issubset(columns):
        raise FileError(
            f"{name} must have one column of labels, which label=NAME names; its columns are "
            f"{', '.join(columns)}."
        )
    names = features[labels[0]].get("names") if labels and labels[0] in kinds else None
    classes = tuple(map(str, names)) if names else None
    return images[0], labels[0] if labels else None, classes


def _holds_bytes(kind: Any) -> bool:
    types = require("pyarrow", extra="parquet", needed_by="a .parquet file").types
    if types.is_struct(kind):
        at = kind.get_field_index("bytes")
        return at >= 0 and _holds_bytes(kind.field(at).type)
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


class TarImages(EncodedImages):
    """Plain tar files of samples: members that share their name up to the first dot.

    ``folder/0001.jpg`` and ``folder/0001.cls`` are one sample. Its image is the member with the
    ending of an image; its label is the number or name in ``.cls``. Names are sorted to give the
    classes. Headers are read once and images where they are; nothing is unpacked, so names in the
    archive never become paths.

    Args:
        source: A file, a folder of ``.tar`` files, or a list of files.
    """

    def __init__(self, source: Source) -> None:
        self.files = _files_of(source, ".tar")
        name = str(source) if isinstance(source, (str, os.PathLike)) else "tar shards"
        samples = [
            (number, *sample) for number, file in enumerate(self.files) for sample in _samples(file)
        ]
        if not samples:
            raise FileError(f"{name} holds no images. A sample's image ends in .jpg, .png ...")
        self._shard = np.array([sample[0] for sample in samples], np.int32)
        self._keys = [sample[1] for sample in samples]
        self._offset = np.array([sample[2] for sample in samples], np.int64)
        self._size = np.array([sample[3] for sample in samples], np.int64)
        classes, labels = _named_labels([sample[4] for sample in samples], None, name)
        super().__init__(len(samples), name=name, labels=labels, classes=classes)

    def _encoded(self, index: int) -> bytes:
        file, size = self.files[self._shard[index]], int(self._size[index])
        with parsing(file, "a tar file"), file.open("rb") as opened:
            opened.seek(int(self._offset[index]))
            content = opened.read(size)
        if len(content) < size:
            raise FileError(f"{file} has become shorter since it was opened; open it again.")
        return content

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """The shard and the member: ``train-000.tar/0001.jpg``."""
        return [f"{self.files[self._shard[i]].name}/{self._keys[i]}" for i in map(int, indices)]


def _samples(file: Path) -> Iterator[tuple[str, int, int, int | str | None]]:
    """Name, offset and size of the image of every sample, and its label, in order."""
    samples: dict[str, dict[str, tarfile.TarInfo]] = {}
    with parsing(file, "an uncompressed tar file"), file.open("rb") as opened:
        with tarfile.open(fileobj=opened, mode="r:") as archive:
            while (info := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # it keeps every header
                if not (info.isdir() or (info.isreg() and info.sparse is None)):
                    raise FileError(
                        f"{file} must hold plain files; {info.name} is a link or the like. Write "
                        "it again: tar --dereference --hard-dereference."
                    )
                if parts := _NAME.fullmatch(info.name):
                    ending = parts[2].lower()
                    role = "image" if f".{ending}" in SUFFIXES else ending
                    sample = samples.setdefault(parts[1], {})
                    if sample.setdefault(role, info) is not info:
                        raise FileError(f"{file} must have one {role} per sample, not {info.name}.")
            opened.seek(archive.offset)
            # Python's reader stops at a damaged header as if it were the end.
            if opened.read(512) != bytes(512):
                raise FileError(f"{file} is damaged or cut short. Write it again.")
        for sample in samples.values():
            label: int | str | None = None
            if "cls" in sample:
                opened.seek(sample["cls"].offset_data)
                label = opened.read(min(sample["cls"].size, 1 << 20)).decode("utf-8").strip()
                label = int(label) if label.isascii() and label.isdigit() else label
            if image := sample.get("image"):
                yield image.name, image.offset_data, image.size, label
