"""Images in Parquet files, as Hugging Face and others store them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.image_files import EncodedImages, files_of
from shiftcal.datasets.labels import named_labels
from shiftcal.errors import FileError, require
from shiftcal.files import open_parquet, parquet_table

# Groups of rows kept in memory, and rows read between two checks of how much memory they take.
_KEPT, _ROWS = 4, 64


class ParquetImages(EncodedImages):
    """A table with a column of image files, in one file or a folder of them.

    A group of rows is read at a time and the last four are kept, so memory is bounded by the size
    of the groups the file was written with. Classes are those the file names (Hugging Face's
    ``ClassLabel``), else the sorted names where labels are text.

    Args:
        source: A file, a folder of ``.parquet`` files, a pattern such as ``test-{0..3}.parquet``,
            or a list of files.
        image: The column of images: bytes, or ``{bytes, path}``. Default: found by its type.
        label: The column of labels. Default: found by its type or name.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        image: str | None = None,
        label: str | None = None,
    ) -> None:
        self.files = files_of(source, suffix=".parquet")
        name = str(source) if isinstance(source, (str, os.PathLike)) else "Parquet files"
        chosen: list[tuple[str, str | None, tuple[str, ...] | None]] = []
        rows: list[list[int]] = []
        labels: list[int | str | None] = []
        for file in self.files:
            with open_parquet(file) as table:
                facts = table.metadata
                chosen.append(_columns(table.schema_arrow, image, label, str(file)))
                if chosen[-1] != chosen[0]:
                    raise FileError(
                        f"{file} must have the columns and classes of {self.files[0].name}, "
                        f"{chosen[0]}; it has {chosen[-1]}."
                    )
                rows.append([facts.row_group(g).num_rows for g in range(facts.num_row_groups)])
                column = chosen[0][1]
                if column is None:
                    labels += [None] * sum(rows[-1])
                else:
                    cells = parquet_table(file, table, [column])[column]
                    labels += _labels(cells, str(file))
        self._column, _, classes = chosen[0]
        self._groups = [(i, g) for i, groups in enumerate(rows) for g in range(len(groups))]
        self._ends = np.cumsum([n for groups in rows for n in groups], dtype=np.int64)
        self._starts = np.cumsum([0, *map(sum, rows)], dtype=np.int64)
        n = int(self._starts[-1])
        if not n:
            raise FileError(f"{name} holds no images: it has no rows.")
        names, indices = named_labels(labels, classes, ids=range(n), name=name)
        self._start_cache()
        super().__init__(n, name=name, labels=indices, classes=names)

    def _start_cache(self) -> None:
        self._cache: dict[int, Any] = {}
        self._lock = Lock()

    def _encoded(self, index: int) -> memoryview:
        group = int(np.searchsorted(self._ends, index, side="right"))
        row = index - (int(self._ends[group - 1]) if group else 0)
        column = self._read_group(group)
        cell = column[row]
        if hasattr(column.type, "get_field_index") and cell.is_valid:
            cell = cell["bytes"]
        if not cell.is_valid:
            raise FileError(
                f"{self._called(index)} has no bytes. Write the data set with its images embedded; "
                "paths in it are not followed."
            )
        return memoryview(cell.as_buffer())

    def _read_group(self, number: int) -> Any:
        # One thread reads a group while the others wait for it; they decode side by side.
        with self._lock:
            if number not in self._cache:
                which, group = self._groups[number]
                path = self.files[which]
                with open_parquet(path) as file:
                    table = parquet_table(path, file, [self._column], group=group, rows=_ROWS)
                    column = table[self._column]
                    whole = column.chunk(0) if column.num_chunks == 1 else column
                    whole.validate(full=True)
                while len(self._cache) >= _KEPT:
                    del self._cache[next(iter(self._cache))]
                self._cache[number] = whole
            return self._cache[number]

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


def _columns(
    schema: Any, image: str | None, label: str | None, name: str
) -> tuple[str, str | None, tuple[str, ...] | None]:
    """The column of images, the column of labels, and the names of the classes."""
    try:  # what Hugging Face writes about the columns
        features = dict(json.loads(schema.metadata[b"huggingface"])["info"]["features"])
    except (ValueError, KeyError, TypeError):
        features = {}

    def of_type(columns: Sequence[str], kind: str) -> list[str]:
        pairs = ((column, features.get(column)) for column in columns)
        return [column for column, f in pairs if isinstance(f, dict) and f.get("_type") == kind]

    def choose(
        asked: str | None, role: str, columns: Sequence[str], *tries: Sequence[str]
    ) -> str | None:
        if asked is not None and asked not in columns:
            raise FileError(
                f"{name} has no column {asked!r} that can hold {role}s; candidates are {columns}."
            )
        found = next(filter(None, tries), ()) if asked is None else (asked,)
        if len(found) > 1:
            raise FileError(
                f"{name} has more than one column of {role}s: {', '.join(found)}. Say which: "
                f"{role}={found[0]!r}."
            )
        return found[0] if found else None

    holders = [field.name for field in schema if _holds_bytes(field.type)]
    usual = [column for column in holders if column in ("image", "img", "images")]
    images = choose(image, "image", holders, of_type(holders, "Image"), usual, holders)
    if images is None:
        raise FileError(
            f"{name} has no column with the bytes of image files; its columns are {schema.names}."
        )
    coded = of_type(schema.names, "ClassLabel")
    usual = [column for column in schema.names if column in ("label", "labels")]
    labels = choose(label, "label", schema.names, coded, usual)
    names = features[labels].get("names") if labels in coded else None
    return images, labels, tuple(map(str, names)) if names else None


def _holds_bytes(kind: Any) -> bool:
    types = require("pyarrow", extra="parquet", needed_by="a .parquet file").types
    if types.is_struct(kind):
        at = kind.get_field_index("bytes")
        return at >= 0 and _holds_bytes(kind.field(at).type)
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _labels(column: Any, name: str) -> list[int | str | None]:
    types = require("pyarrow", extra="parquet", needed_by="a .parquet file").types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        raise FileError(f"{name}: labels must be whole numbers or names; they are {kind}.")
    return list(column.to_pylist())
