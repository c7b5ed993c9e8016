"""Rows by columns, whether they are an array or a DataFrame, and copies with other cells."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._registry import suggest
from shiftcal.corruptions.tabular._kinds import kind_of
from shiftcal.errors import InputError

_LOST = {"i": np.float64, "u": np.float64, "b": np.float64, "f": None, "O": None}


@dataclass(frozen=True)
class Change:
    """New values for some cells of a column.

    Attributes:
        cells: Which ones, ``(n,)``.
        values: Theirs, one for each cell that changes; ``None`` makes them missing.
        whole: Whether they are whole numbers, though they may come as floats.
    """

    cells: NDArray[np.bool_]
    values: NDArray[Any] | None
    whole: bool = False

    def as_type(self, dtype: Any) -> Any:
        """The values as a type can hold them: rounded if it is whole, and not beyond its ends."""
        assert self.values is not None
        if getattr(dtype, "kind", "O") == "O":
            return [round(x) for x in self.values.tolist()] if self.whole else self.values
        return _within(self.values, dtype)


class Table:
    """Rows as columns.

    Args:
        rows: An array ``(n, d)``, or a pandas DataFrame.

    Attributes:
        rows: The same.
        labels: What the columns are called; their positions in an array.

    Raises:
        InputError: If they are neither, or two columns have one name.
    """

    def __init__(self, rows: Any) -> None:
        pandas = sys.modules.get("pandas")  # whoever has a DataFrame has imported it
        self.rows = rows
        self.is_frame = pandas is not None and isinstance(rows, pandas.DataFrame)
        if self.is_frame:
            self.labels: tuple[Any, ...] = tuple(rows.columns)
            if len(set(self.labels)) < len(self.labels):
                twice = next(x for x in self.labels if self.labels.count(x) > 1)
                raise InputError(f"columns must have different names; {twice!r} comes twice.")
        else:
            self.labels = tuple(range(_checked_array(rows).shape[1]))
        if not (len(rows) and self.labels):
            raise InputError(f"rows must not be empty; got shape {rows.shape}.")

    @property
    def container(self) -> str:
        """What the rows are in, for messages."""
        return "a DataFrame" if self.is_frame else "an array"

    def column(self, position: int) -> Any:
        """One column: a Series of a DataFrame, else an array ``(n,)``."""
        return self.rows.iloc[:, position] if self.is_frame else self.rows[:, position]

    def position(self, label: Any) -> int:
        """Where the column of that name is.

        Raises:
            InputError: If there is none.
        """
        if label in self.labels and not isinstance(label, bool):
            return self.labels.index(label)
        if not self.is_frame:
            raise InputError(
                f"columns of an array are numbered 0 to {len(self.labels) - 1}; got {label!r}."
            )
        near = suggest(label, [str(each) for each in self.labels[:20]])
        raise InputError(f"rows must have a column {label!r}; they have not. {near}")

    def kinds(self) -> str:
        """The columns and what they hold, for messages."""
        shown = [
            f"{label!r} ({kind_of(self.column(j))})" for j, label in enumerate(self.labels[:8])
        ]
        return ", ".join([*shown, "..."] if len(self.labels) > 8 else shown)

    def changed(self, changes: Mapping[int, Change]) -> Any:
        """A copy with the cells of some columns changed; nothing is shared with the rows."""
        return self._changed_frame(changes) if self.is_frame else self._changed_array(changes)

    def _changed_array(self, changes: Mapping[int, Change]) -> Any:
        dtype: Any = self.rows.dtype
        if any(change.values is None for change in changes.values()):
            dtype = _LOST.get(dtype.kind, np.object_) or dtype
        for change in changes.values():  # longer words than any of these rows has
            if change.values is not None and np.dtype(dtype).kind in "US":
                dtype = np.result_type(dtype, change.values.dtype)
        made = self.rows.astype(dtype)
        for position, change in changes.items():
            lost = change.values is None
            made[change.cells, position] = np.nan if lost else change.as_type(made.dtype)
        return made

    def _changed_frame(self, changes: Mapping[int, Change]) -> Any:
        made = self.rows.copy()
        for position, change in changes.items():
            series = self.column(position)
            if change.values is None:
                made.isetitem(position, series.mask(change.cells))
                continue
            inner = getattr(series.dtype, "numpy_dtype", series.dtype)
            series = series.copy()
            try:
                series.iloc[np.flatnonzero(change.cells)] = change.as_type(inner)
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"column {self.labels[position]!r} must be able to hold the values that were "
                    f"seen when the corruption was fitted; its type is {series.dtype}: {error}. "
                    "Give both the same type."
                ) from error
            made.isetitem(position, series)
        return made


def _within(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    if dtype.kind not in "iuf" or values.dtype.kind not in "iuf":
        return values
    limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    low, high = float(limits.min), float(limits.max)
    if dtype.kind != "f":
        values = np.rint(values)
        if high > limits.max:  # the largest 64-bit number has no float of its own
            high = float(np.nextafter(high, 0))
    return np.clip(values, low, high).astype(dtype)


def _checked_array(rows: Any) -> NDArray[Any]:
    if isinstance(rows, np.ma.MaskedArray):
        raise InputError("rows must not be masked; pass rows.filled(np.nan).")
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        return rows
    if _are_texts(rows):
        raise InputError(
            "rows must be an array (n, d) or a pandas DataFrame; got texts. For those there are "
            "the corruptions of shiftcal.corruptions.text, such as typos."
        )
    if isinstance(rows, np.ndarray):
        raise InputError(f"rows must be an array of shape (n, d); got shape {rows.shape}.")
    ways = ("toarray", "to_pandas")  # of sparse matrices; of polars, Arrow and others
    way = next((f"rows.{each}()" for each in ways if hasattr(rows, each)), "np.asarray(rows)")
    raise InputError(
        f"rows must be an array (n, d) or a pandas DataFrame; got {type(rows).__name__}. "
        f"Pass {way}."
    )


def _are_texts(rows: Any) -> bool:
    """Whether it is a list, a tuple, an array or a Series of text."""
    of_one = isinstance(rows, (list, tuple)) or getattr(rows, "ndim", None) == 1
    return of_one and len(rows) > 0 and all(isinstance(each, str) for each in rows)
