"""Images in a folder that Hugging Face's ``save_to_disk`` wrote."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from shiftcal._registry import suggest
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
from shiftcal.datasets.encoded import EncodedImages
from shiftcal.errors import FileError, MissingData

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
            told = features_of(tables[0].schema) or _described(saved)
            columns = choose_columns(tables[0].schema, told, image=image, label=label, name=name)
            labels = [cell for table in tables for cell in _labels(table, columns, name)]
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
        told = _read_json(folder / _STATE).get("_split")
        if told != split:
            raise FileError(
                f"{folder} is one data set, not several splits"
                + (f"; it is the split {told!r}." if told else ". Leave split out.")
            )
    return folder


def _arrow_files(saved: Path) -> list[Path]:
    state = _read_json(saved / _STATE)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise FileError(
            f"{saved} was saved as a selection of rows by an old version of datasets. Load it "
            "there, call flatten_indices() and save it again."
        )
    told = state.get("_data_files")
    names = [entry.get("filename") for entry in told] if isinstance(told, list) else []
    if not names or not all(isinstance(name, str) and name == Path(name).name for name in names):
        raise FileError(f"{saved / _STATE} must name the files beside it in _data_files.")
    for name in names:
        if not (saved / name).is_file():
            raise FileError(f"{saved / name} does not exist, though {_STATE} names it.")
    return [saved / name for name in names]


def _described(saved: Path) -> dict[str, Any]:
    features = _read_json(saved / "dataset_info.json").get("features")
    return features if isinstance(features, dict) else {}


def _labels(table: Any, columns: Columns, name: str) -> list[int | str | None]:
    if columns.label is None:
        return [None] * table.num_rows
    return label_cells(table[columns.label], name=name)


def _mapped(file: Path) -> Any:
    with parsing(file, "an Arrow file"):
        arrow = pyarrow("pyarrow")
        return arrow.ipc.open_stream(arrow.memory_map(str(file))).read_all()


def _read_json(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{file} is not JSON: {error}. Write the data set again.") from error
    if not isinstance(told, dict):
        raise FileError(f"{file} must hold an object; it holds something else.")
    return told
