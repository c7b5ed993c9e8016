"""What a column holds: numbers, whole numbers, categories, or something that is left alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Kind: TypeAlias = Literal["float", "integer", "category", "empty", "other"]

_BY_LETTER: dict[str, Kind] = {
    "f": "float",
    "i": "integer",
    "u": "integer",
    "b": "category",
    "U": "category",
    "S": "category",
    "T": "category",
}
_BOOLEANS = (bool, np.bool_)
_WORDS = (str, bytes, Real, *_BOOLEANS)


def kind_of(column: Any) -> Kind:
    """The kind of a column: an array ``(n,)`` or a pandas Series.

    Booleans are categories. Dates, durations, complex numbers, sparse columns and objects that are
    neither text nor numbers are other kinds.
    """
    dtype = column.dtype
    if not isinstance(dtype, np.dtype) and dtype.name == "category":
        return "category"
    if str(dtype).startswith("Sparse"):
        return "other"
    if dtype.kind == "O":
        return _kind_of_objects(np.asarray(column, dtype=object))
    return _BY_LETTER.get(dtype.kind, "other")


def _kind_of_objects(values: Iterable[Any]) -> Kind:
    types = {type(value) for value in values if not is_missing(value)}
    if not types:
        return "empty"
    if not any(issubclass(each, _BOOLEANS) for each in types):
        if all(issubclass(each, Integral) for each in types):
            return "integer"
        if all(issubclass(each, Real) for each in types):
            return "float"
    return "category" if all(issubclass(each, _WORDS) for each in types) else "other"


def is_missing(value: Any) -> bool:
    """Whether a cell holds None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def missing_cells(column: Any) -> NDArray[np.bool_]:
    """Where the cells of a column are missing, ``(n,)``."""
    if hasattr(column, "isna"):
        return np.asarray(column.isna(), dtype=np.bool_)
    if column.dtype.kind == "f":
        found: NDArray[np.bool_] = np.isnan(column)
        return found
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=np.bool_)
    return np.fromiter((is_missing(value) for value in column), np.bool_, count=len(column))


def as_numbers(column: Any) -> NDArray[np.float64]:
    """The numbers of a numeric column, ``(n,)``; NaN where they are missing."""
    missing = missing_cells(column)
    found = np.full(len(column), np.nan)
    found[~missing] = np.asarray(column[~missing], dtype=np.float64)
    return found
