"""Images and labels in the columns of an Arrow table, as Hugging Face stores them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from shiftcal._optional import require
from shiftcal.errors import FileError, ShiftcalError

pyarrow = partial(require, extra="parquet", needed_by="reading images from Arrow or Parquet files")
_IMAGE_NAMES = ("image", "img", "images")
_LABEL_NAMES = ("label", "labels")


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

    def described(self) -> str:
        """In words, for a message."""
        names = "" if self.classes is None else f" ({len(self.classes)} names of classes)"
        return f"images {self.image!r} and labels {self.label!r}{names}"


def features_of(schema: Any) -> dict[str, Any]:
    """What Hugging Face wrote about the columns into the schema; nothing if it did not."""
    try:
        told = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = told["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}


def choose_columns(
    schema: Any, features: Mapping[str, Any], *, image: str | None, label: str | None, name: str
) -> Columns:
    """The columns that are meant.

    Args:
        schema: Of the table.
        features: What is told of its columns.
        image: The column of images, if it is named by the user.
        label: The column of labels, likewise.
        name: What the set is called in messages.

    Raises:
        FileError: If a named column is not there, or it cannot be told which is meant.
    """
    holders = [field.name for field in schema if _holds_images(field.type)]
    told = [column for column in holders if _kind(features, column) == "Image"]
    tries: tuple[list[str], ...] = (told, _among(_IMAGE_NAMES, holders), holders)
    found = _the_one(image, schema, tries, name=name, role="image")
    if found is None:
        raise FileError(
            f"{name} has no column of images, which holds the bytes of image files; its columns "
            f"are {_listed(schema)}."
        )
    if found not in holders:
        raise FileError(
            f"{name}: column {found!r} must hold the bytes of image files; it holds "
            f"{schema.field(found).type}."
        )
    told = [column for column in schema.names if _kind(features, column) == "ClassLabel"]
    tries = (told, _among(_LABEL_NAMES, schema.names))
    truth = _the_one(label, schema, tries, name=name, role="label")
    names = features[truth].get("names") if truth is not None and truth in told else None
    return Columns(found, truth, None if not names else tuple(map(str, names)))


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


def label_cells(column: Any, *, name: str) -> list[int | str | None]:
    """The labels of a column, ``None`` where there is none.

    Raises:
        FileError: If they are neither whole numbers nor text.
    """
    types = pyarrow("pyarrow").types
    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        raise FileError(f"{name}: labels must be whole numbers or names; they are {kind}.")
    return list(column.to_pylist())


@contextmanager
def parsing(path: object, kind: str) -> Iterator[None]:
    """Turn whatever pyarrow raises into a FileError that names the file."""
    try:
        yield
    except (ShiftcalError, ImportError):  # nothing to do with the file
        raise
    except Exception as error:  # damaged bytes make it raise anything
        text = " ".join(str(error).split())[:200]
        raise FileError(
            f"{path} could not be read as {kind}: it is damaged, cut short, or something else "
            f"({text}). Fetch or write it again."
        ) from error


def _the_one(
    asked: str | None, schema: Any, tries: Sequence[Sequence[str]], *, name: str, role: str
) -> str | None:
    if asked is not None:
        if asked not in schema.names:
            raise FileError(f"{name} has no column {asked!r}; it has {_listed(schema)}.")
        return asked
    for found in tries:
        if len(found) > 1:
            raise FileError(
                f"{name} has more than one column that may be the {role}: {', '.join(found)}. "
                f"Say which: {role}={found[0]!r}."
            )
        if found:
            return found[0]
    return None


def _among(wanted: Sequence[str], names: Sequence[str]) -> list[str]:
    return [name for name in names if name in wanted]


def _kind(features: Mapping[str, Any], column: str) -> str | None:
    feature = features.get(column)
    return feature.get("_type") if isinstance(feature, dict) else None


def _holds_images(kind: Any) -> bool:
    types = pyarrow("pyarrow").types
    if types.is_struct(kind):
        at = kind.get_field_index("bytes")
        return at >= 0 and _is_bytes(types, kind.field(at).type)
    return _is_bytes(types, kind)


def _is_bytes(types: Any, kind: Any) -> bool:
    return bool(types.is_binary(kind) or types.is_large_binary(kind))


def _listed(schema: Any) -> str:
    return ", ".join(map(repr, schema.names[:20])) or "none"
