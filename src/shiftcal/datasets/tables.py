"""Images in Parquet files and in folders that Hugging Face's save_to_disk writes."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.image_files import EncodedImages, files_of
from shiftcal.datasets.labels import named_labels
from shiftcal.errors import FileError, MissingData, require
from shiftcal.files import open_parquet, parquet_table, parsing, read_json, refuse_bomb
from shiftcal.registry import suggest

# --------------------------------------------------------------------------------------
# Images and labels in the columns of an Arrow table, as Hugging Face stores them.
# --------------------------------------------------------------------------------------

pyarrow = partial(require, extra="parquet", needed_by="reading images from Arrow or Parquet files")


@dataclass(frozen=True)
class Columns:
    """Which columns are read.

    Attributes:
        image: The column of images.
        label: The column of labels, if there is one.
        classes: Names of the classes that the file gives, if any.
    """

    image: str
    label: str | None
    classes: tuple[str, ...] | None

    def __str__(self) -> str:
        names = "" if self.classes is None else f" ({len(self.classes)} names of classes)"
        return f"images {self.image!r} and labels {self.label!r}{names}"


def features_of(schema: Any) -> dict[str, Any]:
    """What Hugging Face wrote about the columns into the schema; nothing if it did not."""
    try:
        note = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = note["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}


def choose_columns(
    schema: Any, features: Mapping[str, Any], *, image: str | None, label: str | None, name: str
) -> Columns:
    """The columns that are meant.

    Args:
        schema: Of the table.
        features: What Hugging Face wrote about its columns.
        image: The column of images, if it is named by the user.
        label: The column of labels, likewise.
        name: What the set is called in messages.

    Raises:
        FileError: If a named column is not there, or it is unclear which is meant.
    """
    types = pyarrow("pyarrow").types

    def is_bytes(kind: Any) -> bool:
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    def holds_images(kind: Any) -> bool:
        at = kind.get_field_index("bytes") if types.is_struct(kind) else -1
        return is_bytes(kind.field(at).type) if at >= 0 else is_bytes(kind)

    def of_kind(columns: Sequence[str], kind: str) -> list[str]:
        pairs = ((column, features.get(column)) for column in columns)
        return [column for column, f in pairs if isinstance(f, dict) and f.get("_type") == kind]

    def choose(asked: str | None, role: str, *tries: Sequence[str]) -> str | None:
        if asked is not None and asked not in schema.names:
            raise FileError(f"{name} has no column {asked!r}; it has {listed}.")
        found = next(filter(None, tries), ()) if asked is None else (asked,)
        if len(found) > 1:
            raise FileError(
                f"{name} has more than one column that may be the {role}: {', '.join(found)}. "
                f"Say which: {role}={found[0]!r}."
            )
        return found[0] if found else None

    listed = ", ".join(map(repr, schema.names[:20])) or "none"
    holders = [field.name for field in schema if holds_images(field.type)]
    usual = [column for column in holders if column in ("image", "img", "images")]
    found = choose(image, "image", of_kind(holders, "Image"), usual, holders)
    if found is None:
        raise FileError(
            f"{name} has no column of images, which holds the bytes of image files; its columns "
            f"are {listed}."
        )
    if found not in holders:
        raise FileError(
            f"{name}: column {found!r} must hold the bytes of image files; it holds "
            f"{schema.field(found).type}."
        )
    class_labels = of_kind(schema.names, "ClassLabel")
    usual = [column for column in schema.names if column in ("label", "labels")]
    labels = choose(label, "label", class_labels, usual)
    names = features[labels].get("names") if labels in class_labels else None
    return Columns(found, labels, tuple(map(str, names)) if names else None)


def image_cell(column: Any, row: int, *, name: str) -> memoryview:
    """The bytes of the image file in a cell.

    Args:
        column: An Arrow array, of bytes or of ``{bytes, path}``.
        row: Which cell.
        name: What the image is called in messages.

    Raises:
        FileError: If there are none.
    """
    cell = column[row]
    if hasattr(column.type, "get_field_index") and column.type.get_field_index("bytes") >= 0:
        path = cell["path"].as_py() if cell.is_valid and "path" in cell else None
        cell = cell["bytes"] if cell.is_valid else cell
        if not cell.is_valid and path:
            raise FileError(
                f"{name} has no bytes but the path {path!r:.80}, which is not followed. Write the "
                "data set with its images embedded."
            )
    if not cell.is_valid:
        raise FileError(f"{name} is empty: it has no bytes.")
    return memoryview(cell.as_buffer())


def label_cells(table: Any, columns: Columns, *, n: int, name: str) -> list[int | str | None]:
    """The ``n`` labels of a table, ``None`` where there is none.

    Raises:
        FileError: If they are neither whole numbers nor text.
    """
    if columns.label is None:
        return [None] * n
    types = pyarrow("pyarrow").types
    column = table[columns.label]
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        raise FileError(f"{name}: labels must be whole numbers or names; they are {kind}.")
    return list(column.to_pylist())


# --------------------------------------------------------------------------------------
# Images in a folder that Hugging Face's ``save_to_disk`` wrote.
# --------------------------------------------------------------------------------------

_STATE = "state.json"
_DICT = "dataset_dict.json"
# Mapping files takes a moment and happens once a process, so that one lock serves all sets.
_OPENING = Lock()


class HuggingFaceImages(EncodedImages):
    """A saved ``Dataset``, or one split of a saved ``DatasetDict``; pyarrow alone reads it.

    Its Arrow files are mapped into memory. Classes are those of its ``ClassLabel``, else the
    sorted names where labels are text.

    Args:
        folder: What ``save_to_disk`` was given.
        split: Which one, of a ``DatasetDict``.
        image: The column of images; found by its type if there is one.
        label: The column of labels; found likewise.
        classes: Names of the classes, instead of those in the file.
        name: As for every set; by default the folder.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        split: str | None = None,
        image: str | None = None,
        label: str | None = None,
        classes: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        saved = _chosen(Path(folder).absolute(), split)
        name = name or (str(folder) if split is None else f"{folder} {split}")
        self.files = _arrow_files(saved)
        tables = [_mapped(file) for file in self.files]
        n = sum(table.num_rows for table in tables)
        if not n:
            raise FileError(f"{name} holds no images: it has no rows.")
        with parsing(saved, "saved Arrow tables"):
            features = features_of(tables[0].schema)
            if not features:
                info = _read_json(saved / "dataset_info.json").get("features")
                features = info if isinstance(info, dict) else {}
            columns = choose_columns(
                tables[0].schema, features, image=image, label=label, name=name
            )
            labels = [
                cell
                for table in tables
                for cell in label_cells(table, columns, n=table.num_rows, name=name)
            ]
        self._column = columns.image
        known = columns.classes if classes is None else classes
        names, truth = named_labels(labels, known, ids=range(n), name=name)
        self._open_column(tables)
        super().__init__(n, name=name, labels=truth, classes=names)

    def _open_column(self, tables: Sequence[Any]) -> None:
        chunks: list[Any] = []
        for file, table in zip(self.files, tables, strict=True):
            with parsing(file, "an Arrow file"):
                column = table[self._column]
                column.validate(full=True)
                chunks += column.chunks
        self._ends = np.cumsum([len(chunk) for chunk in chunks], dtype=np.int64)
        self._chunks = chunks

    def _encoded(self, index: int) -> memoryview:
        if not self._chunks:
            with _OPENING:
                self._open_column([_mapped(file) for file in self.files])
        at = int(np.searchsorted(self._ends, index, side="right"))
        row = index - (int(self._ends[at - 1]) if at else 0)
        return image_cell(self._chunks[at], row, name=self._called(index))

    def __getstate__(self) -> dict[str, Any]:
        # Another process maps the files itself, when it first reads an image.
        return {**self.__dict__, "_chunks": []}


def is_saved(folder: Path) -> bool:
    """Whether ``save_to_disk`` wrote the folder."""
    return (folder / _STATE).is_file() or (folder / _DICT).is_file()


def _chosen(folder: Path, split: str | None) -> Path:
    if (folder / _DICT).is_file():
        splits = _read_json(folder / _DICT).get("splits")
        known = [str(one) for one in splits] if isinstance(splits, list) else []
        if split is None and len(known) == 1:
            split = known[0]
        if split is None:
            raise FileError(f"{folder} has the splits {', '.join(known)}. Say which: split=...")
        if split not in known:
            raise MissingData(f"{folder} has no split {split!r}. {suggest(split, known)}")
        return folder / split
    if not (folder / _STATE).is_file():
        what = "is not a folder" if not folder.is_dir() else f"holds no {_STATE}"
        raise MissingData(f"{folder} {what}; a folder that save_to_disk wrote has one.")
    if split is not None:
        saved_split = _read_json(folder / _STATE).get("_split")
        if saved_split != split:
            raise FileError(
                f"{folder} is one data set, not several splits"
                + (f"; it is the split {saved_split!r}." if saved_split else ". Leave split out.")
            )
    return folder


def _arrow_files(saved: Path) -> list[Path]:
    state = _read_json(saved / _STATE)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise FileError(
            f"{saved} was saved as a selection of rows by an old version of datasets. Load it "
            "there, call flatten_indices() and save it again."
        )
    entries = state.get("_data_files")
    names = [entry.get("filename") for entry in entries] if isinstance(entries, list) else []
    if not names or not all(isinstance(name, str) and name == Path(name).name for name in names):
        raise FileError(f"{saved / _STATE} must name the files next to it in _data_files.")
    for name in names:
        if not (saved / name).is_file():
            raise FileError(f"{saved / name} does not exist, though {_STATE} names it.")
    return [saved / name for name in names]


def _mapped(file: Path) -> Any:
    with parsing(file, "an Arrow file"):
        arrow = pyarrow("pyarrow")
        stream = arrow.ipc.open_stream(arrow.memory_map(str(file)))
        size, batches = 0, []
        for batch in stream:  # mapped, unless it is compressed
            size += batch.nbytes
            refuse_bomb(file, unpacked=size)
            batches.append(batch)
        return arrow.Table.from_batches(batches, stream.schema)


def _read_json(file: Path) -> dict[str, Any]:
    document = read_json(file, "JSON", fix="Write the data set again.")
    if not isinstance(document, dict):
        raise FileError(f"{file} must hold an object; it holds something else.")
    return document


# --------------------------------------------------------------------------------------
# Images in Parquet files, as Hugging Face and others keep them.
# --------------------------------------------------------------------------------------

_KEPT = 4
# Images read between two looks at how much memory they take.
_ROWS = 64


class ParquetImages(EncodedImages):
    """A table with a column of image files, one file of it or a folder of them.

    A group of rows is read at a time and the last four are kept, so memory is bounded by the size
    of the groups the file was written with. Classes are those the file names (Hugging Face's
    ``ClassLabel``), else the sorted names where labels are text.

    Args:
        source: A file, a folder of ``.parquet`` files, a pattern such as ``test-{0..3}.parquet``,
            or a list of files.
        image: The column of images: bytes, or ``{bytes, path}``. It is found by its type if there
            is one.
        label: The column of labels; found likewise.
        classes: Names of the classes, instead of those in the file.
        name: As for every set; by default that of the source.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        image: str | None = None,
        label: str | None = None,
        classes: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        self.files = files_of(source, suffix=".parquet")
        name = name or (str(source) if isinstance(source, (str, os.PathLike)) else "Parquet files")
        columns: Columns | None = None
        rows: list[list[int]] = []
        labels: list[int | str | None] = []
        for file in self.files:
            with open_parquet(file) as table:
                schema, facts = table.schema_arrow, table.metadata
                these = choose_columns(
                    schema, features_of(schema), image=image, label=label, name=str(file)
                )
                columns = columns or these
                if these != columns:
                    raise FileError(
                        f"{file} must have the columns and classes of {self.files[0].name}, "
                        f"{columns}; it has {these}."
                    )
                rows.append([facts.row_group(g).num_rows for g in range(facts.num_row_groups)])
                whole = [these.label] if these.label else []
                cells = parquet_table(file, table, whole) if whole else None
                labels += label_cells(cells, these, n=sum(rows[-1]), name=str(file))
        assert columns is not None, "there is at least one file"
        self._column = columns.image
        self._groups = [(i, g) for i, groups in enumerate(rows) for g in range(len(groups))]
        self._ends = np.cumsum([n for groups in rows for n in groups], dtype=np.int64)
        self._starts = np.cumsum([0, *map(sum, rows)], dtype=np.int64)
        n = int(self._starts[-1])
        if not n:
            raise FileError(f"{name} holds no images: it has no rows.")
        known = columns.classes if classes is None else classes
        names, indices = named_labels(labels, known, ids=range(n), name=name)
        self._start_cache()
        super().__init__(n, name=name, labels=indices, classes=names)

    def _start_cache(self) -> None:
        self._cache: OrderedDict[int, Any] = OrderedDict()
        self._lock = Lock()

    def _encoded(self, index: int) -> memoryview:
        group = int(np.searchsorted(self._ends, index, side="right"))
        row = index - (int(self._ends[group - 1]) if group else 0)
        return image_cell(self._read_group(group), row, name=self._called(index))

    def _read_group(self, number: int) -> Any:
        # One thread reads a group while the others wait for it; they decode side by side.
        with self._lock:
            if number in self._cache:
                self._cache.move_to_end(number)
                return self._cache[number]
            which, group = self._groups[number]
            path = self.files[which]
            with open_parquet(path) as file:
                table = parquet_table(path, file, [self._column], group=group, rows=_ROWS)
                column = table[self._column]
                whole = column.chunk(0) if column.num_chunks == 1 else column
                whole.validate(full=True)
            self._cache[number] = whole
            if len(self._cache) > _KEPT:
                self._cache.popitem(last=False)
            return whole

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """The file and the row in it: ``test.parquet[12]``."""
        owners = np.searchsorted(self._starts, np.asarray(indices), side="right") - 1
        return [
            f"{self.files[owner].name}[{int(index) - int(self._starts[owner])}]"
            for owner, index in zip(owners, indices, strict=True)
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {key: x for key, x in self.__dict__.items() if key not in ("_cache", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start_cache()
