"""Images in Parquet files, as Hugging Face stores them, and in tar shards, as WebDataset does."""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.image_files import SUFFIXES, EncodedImages
from shiftcal.errors import FileError, MissingData, require
from shiftcal.files import open_parquet, parsing

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
