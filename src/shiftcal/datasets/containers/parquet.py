"""Images in Parquet files, as Hugging Face and others keep them."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets._arrow import (
    Columns,
    choose_columns,
    features_of,
    image_cell,
    label_cells,
    parsing,
    pyarrow,
)
from shiftcal.datasets._naming import named_labels
from shiftcal.datasets._sources import files_of
from shiftcal.datasets.encoded import EncodedImages
from shiftcal.errors import FileError

_KIND = "a Parquet file"
_KEPT = 4


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
        outlines = [_outline(file, image, label) for file in self.files]
        _refuse_differences(outlines)
        columns = outlines[0].columns
        self._column = columns.image
        self._groups = [(i, g) for i, one in enumerate(outlines) for g in range(len(one.rows))]
        self._ends = np.cumsum([n for one in outlines for n in one.rows], dtype=np.int64)
        self._starts = np.cumsum([0, *(sum(one.rows) for one in outlines)], dtype=np.int64)
        n = int(self._starts[-1])
        if not n:
            raise FileError(f"{name} holds no images: it has no rows.")
        labels = [label for one in outlines for label in one.labels]
        known = columns.classes if classes is None else classes
        names, truth = named_labels(labels, known, ids=range(n), name=name)
        self._start_cache()
        super().__init__(n, name=name, labels=truth, classes=names)

    def _start_cache(self) -> None:
        self._cache: OrderedDict[int, Any] = OrderedDict()
        self._lock = Lock()

    def _encoded(self, index: int) -> memoryview:
        group, row = self._place(index)
        return image_cell(self._read_group(group), row, name=self._called(index))

    def _place(self, index: int) -> tuple[int, int]:
        group = int(np.searchsorted(self._ends, index, side="right"))
        return group, index - (int(self._ends[group - 1]) if group else 0)

    def _read_group(self, number: int) -> Any:
        # One thread reads a group while the others wait for it; they decode side by side.
        with self._lock:
            if number in self._cache:
                self._cache.move_to_end(number)
                return self._cache[number]
            file, group = self._groups[number]
            path = self.files[file]
            with parsing(path, _KIND), _opened(path) as table:
                column = table.read_row_group(group, columns=[self._column])[self._column]
                whole = column.chunk(0) if column.num_chunks == 1 else column
                whole.validate(full=True)
            self._cache[number] = whole
            if len(self._cache) > _KEPT:
                self._cache.popitem(last=False)
            return whole

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """The file and the row in it: ``test.parquet[12]``."""
        return [self._id(int(index)) for index in indices]

    def _id(self, index: int) -> str:
        file = int(np.searchsorted(self._starts, index, side="right")) - 1
        return f"{self.files[file].name}[{index - int(self._starts[file])}]"

    def __getstate__(self) -> dict[str, Any]:
        return {key: x for key, x in self.__dict__.items() if key not in ("_cache", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start_cache()


def _opened(file: Path) -> Any:
    return pyarrow("pyarrow.parquet").ParquetFile(file, page_checksum_verification=True)


@dataclass(frozen=True)
class _Outline:
    """A file without its images: its columns, the rows of each group, and the labels."""

    file: Path
    columns: Columns
    rows: list[int]
    labels: list[int | str | None]


def _outline(file: Path, image: str | None, label: str | None) -> _Outline:
    with parsing(file, _KIND), _opened(file) as table:
        schema = table.schema_arrow
        features = features_of(schema)
        columns = choose_columns(schema, features, image=image, label=label, name=str(file))
        told = table.metadata
        rows = [told.row_group(group).num_rows for group in range(told.num_row_groups)]
        if columns.label is None:
            return _Outline(file, columns, rows, [None] * sum(rows))
        truth = table.read(columns=[columns.label])[columns.label]
        return _Outline(file, columns, rows, label_cells(truth, name=str(file)))


def _refuse_differences(outlines: Sequence[_Outline]) -> None:
    first = outlines[0]
    for one in outlines[1:]:
        if one.columns != first.columns:
            raise FileError(
                f"{one.file} must have the columns and classes of {first.file.name}, "
                f"{first.columns.described()}; it has {one.columns.described()}."
            )
