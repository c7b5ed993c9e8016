"""Corruptions of tabular rows: an array ``(n, d)`` or a pandas DataFrame in, the same kind out.

``tabular.names()`` lists them, ``tabular.get("noise")`` and ``tabular.Noise`` give the class.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice, check_flag
from shiftcal.corruptions.inputs import InputCorruption, check_strengths, uniforms
from shiftcal.errors import InputError
from shiftcal.registry import TABULAR

names = TABULAR.names
get = TABULAR.get

_NORMAL_IQR = 1.3489795003921634  # interquartile range of the standard normal distribution


def kind_of(column: Any) -> str:
    """``"number"``, ``"category"`` (text, booleans, objects) or ``"other"`` (dates, sparse)."""
    name, kind = str(column.dtype), column.dtype.kind
    if name.startswith(("Sparse", "period")) or kind in "mMc":
        return "other"
    return "number" if kind in "iuf" and name != "category" else "category"


def missing_cells(column: Any) -> NDArray[np.bool_]:
    """Where an array ``(n,)`` or a Series holds None, NaN or another missing value."""
    if hasattr(column, "isna"):
        return np.asarray(column.isna(), np.bool_)
    return np.array([x is None or x != x for x in column.tolist()])  # noqa: PLR0124


class Column(NamedTuple):
    """A column of the reference rows.

    Attributes:
        label: Its name in a DataFrame, its position in an array.
        observed: Its values that are neither missing nor infinite, in the order of the rows.
        is_number: Whether it holds numbers.
    """

    label: Any
    observed: NDArray[Any]
    is_number: bool


class TabularCorruption(InputCorruption):
    """Rows made harder to classify, column by column.

    :meth:`fit` learns what the columns of reference rows hold. A new corruption is a final
    subclass with a ``name``, ``defaults`` for its strengths, the kinds of columns it changes, and
    ``_change``. Other columns and missing cells stay as they are.

    Args:
        strengths: One for each severity, rising; each class says what they mean.
        columns: Names in a DataFrame, positions in an array. Default: all of its kinds.

    Attributes:
        defaults: Strengths of the five severities.
        most: The largest strength that makes sense, if there is one.
        kinds: Kinds of columns it changes by default.
        columns_: What was learnt of the columns it changes.
    """

    defaults: ClassVar[tuple[float, ...]]
    most: ClassVar[float | None] = None
    kinds: ClassVar[tuple[str, ...]] = ("number", "category")
    columns_: tuple[Column, ...]

    def __init__(self, *, strengths: Sequence[float] | None = None, columns: Any = None) -> None:
        chosen = self.defaults if strengths is None else strengths
        self.strengths = check_strengths(chosen, most=self.most)
        self.columns = [columns] if isinstance(columns, (str, int)) else columns

    def fit(self, rows: Any) -> Self:
        """Learn the columns from reference rows: the calibration set, or the training set.

        Raises:
            InputError: If they are no table, or no column can be changed by this corruption.
        """
        labels = _labels(rows)
        found = []
        for label in labels if self.columns is None else self.columns:
            cells = _column(rows, labels, label)
            if self.columns is None and kind_of(cells) not in self.kinds:
                continue
            known = np.array(cells[~missing_cells(cells)])
            if is_number := kind_of(cells) == "number":
                known = known.astype(np.float64)
                known = known[np.isfinite(known)]
            if kind_of(cells) == "other" or (self.kinds == ("number",) and not is_number):
                raise InputError(
                    f"{self.name} cannot change column {label!r} of type {cells.dtype}."
                )
            found.append(Column(label, known, is_number))
        if not found:
            raise InputError(f"{self.name} needs columns of kind {' or '.join(self.kinds)}.")
        self.columns_ = tuple(found)
        return self

    def fitted_to(self, inputs: Any) -> Self:
        """Itself if it is fitted, else a copy that is fitted to these rows."""
        return self if hasattr(self, "columns_") else copy.copy(self).fit(inputs)

    def _apply(self, inputs: Any, severity: int, *, seed: int, first_index: int) -> Any:
        if not hasattr(self, "columns_"):
            from shiftcal.errors import NotFittedError  # imports scikit-learn

            raise NotFittedError(f"{self.name} is not fitted. Call fit(calibration_rows) first.")
        labels = _labels(inputs)
        streams = self._streams(len(inputs), severity, seed=seed, first_index=first_index)
        shared = self._streams(1, 0, seed=seed, first_index=0)
        changes = []
        for j, column in enumerate(self.columns_):

            def draw(i: int | None, j: int = j) -> NDArray[np.float64]:
                return uniforms(shared, j) if i is None else uniforms(streams, 4 * j + i)

            if len(column.observed):
                cells = _column(inputs, labels, column.label)
                change = self._change(column, cells, self.strengths[severity - 1], draw)
                changes += [] if change is None else [(labels.index(column.label), *change)]
        return _changed(inputs, changes)

    @abstractmethod
    def _change(self, column: Column, cells: Any, strength: float, draw: Any) -> Any:
        """The cells of a column that change ``(n,)``, and their new values; ``None`` if none do.

        The values are ``None`` for cells that become missing.

        Args:
            column: What was learnt of it; at least one value was observed.
            cells: The column, a Series or an array ``(n,)``; not to be changed.
            strength: Of the severity.
            draw: ``draw(i)``, i from 0 to 3, gives a number between 0 and 1 for every cell, and
                ``draw(None)`` one for the column.
        """


def _column(rows: Any, labels: list[Any], label: Any) -> Any:
    if label not in labels:
        raise InputError(f"rows must have a column {label!r}; they have {labels[:20]}.")
    j = labels.index(label)
    return rows[:, j] if isinstance(rows, np.ndarray) else rows.iloc[:, j]


def _labels(rows: Any) -> list[Any]:
    """Names of the columns, or positions in an array; checks that it is a table."""
    frame = hasattr(rows, "isetitem")
    if not frame and not (type(rows) is np.ndarray and rows.ndim == 2):
        raise InputError(
            "rows must be an array (n, d) or a pandas DataFrame; got "
            f"{type(rows).__name__}. Convert it first, as with .toarray() or .to_pandas()."
        )
    labels = list(rows.columns) if frame else list(range(rows.shape[1]))
    if 0 in rows.shape or len(set(labels)) < len(labels):
        raise InputError(f"rows must have cells, and columns different names; got {labels}.")
    return labels


def _changed(rows: Any, changes: list[tuple[int, Any, Any]]) -> Any:
    """A copy with other cells; an array gets a type that holds missing values and longer words."""
    if isinstance(rows, np.ndarray):
        dtype = rows.dtype
        if any(values is None for *_, values in changes) and dtype.kind not in "fO":
            dtype = np.dtype(np.float64 if dtype.kind in "iub" else object)
        if dtype.kind in "US":
            dtype = np.result_type(dtype, *(values.dtype for *_, values in changes))
        out = rows.astype(dtype)
        for j, cells, values in changes:
            out[cells, j] = np.nan if values is None else _as_type(values, dtype)
        return out
    out = rows.copy()
    for j, cells, values in changes:
        series = rows.iloc[:, j].copy()
        if values is not None:
            dtype = getattr(series.dtype, "numpy_dtype", series.dtype)
            series.iloc[np.flatnonzero(cells)] = _as_type(values, dtype)
        out.isetitem(j, series.mask(cells) if values is None else series)
    return out


def _as_type(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Numbers as a type holds them: rounded if it is whole, and not beyond its ends."""
    if getattr(dtype, "kind", "O") not in "iuf" or values.dtype.kind != "f":
        return values
    ends: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    high = float(ends.max)
    if high > ends.max:  # the largest 64-bit integer has no float of its own
        high = float(np.nextafter(high, 0))
    values = values if dtype.kind == "f" else np.rint(values)
    return np.clip(values, float(ends.min), high).astype(dtype)


class _Shift(TabularCorruption):
    """Moves numbers; stops at the ends of the observed range if ``clip`` is true."""

    kinds = ("number",)

    def __init__(
        self, *, strengths: Sequence[float] | None = None, columns: Any = None, clip: bool = True
    ) -> None:
        super().__init__(strengths=strengths, columns=columns)
        self.clip = check_flag(clip, name="clip")
        self._note = "" if self.clip else ", beyond the range"

    def _change(self, column: Column, cells: Any, strength: float, draw: Any) -> Any:
        seen = column.observed
        low, high = np.quantile(seen, [0.25, 0.75])
        scale = float(high - low) / _NORMAL_IQR or float(seen.std())
        moved = ~missing_cells(cells)
        moved[moved] = np.isfinite(np.asarray(cells[moved], np.float64))
        before = np.asarray(cells[moved], np.float64)
        values = before + np.broadcast_to(strength * scale * self._move(draw), moved.shape)[moved]
        if self.clip:  # values already outside the range stay where they are
            low, high = np.minimum(before, seen.min()), np.maximum(before, seen.max())
            values = np.clip(values, low, high)
        return (moved, values) if scale else None

    @abstractmethod
    def _move(self, draw: Any) -> Any:
        """The move of every row in units of strength times scale."""


@final
class Noise(_Shift):
    """Adds normal noise to every number: ``x + strength * scale * N(0, 1)``.

    ``scale`` is a robust standard deviation of the column in the reference rows: interquartile
    range / 1.349, or the plain standard deviation where that is 0. Constant columns stay as they
    are. Integers stay integers, within the range of their type.

    Args:
        strengths: One for each severity, rising.
        columns: Default: all that hold numbers, but not booleans. Name the others where numbers
            are codes of categories.
        clip: Stop at the ends of the observed range. Beyond it many models become more confident,
            and a ladder along which confidence rises is of no use.
    """

    name = "noise"
    defaults = (0.1, 0.25, 0.5, 1.0, 2.0)

    def _move(self, draw: Any) -> Any:
        from scipy.special import ndtri

        return ndtri(draw(0))


@final
class Drift(_Shift):
    """Moves whole columns up or down, all rows alike: ``x + strength * scale * (±1)``.

    As when an instrument is replaced. The direction of a column is drawn once from the seed and
    is the same at all severities. ``scale`` is as for :class:`Noise`.

    Args:
        strengths: One for each severity, rising.
        columns: Default: all that hold numbers, but not booleans.
        clip: Stop at the ends of the observed range, as for :class:`Noise`.
    """

    name = "drift"
    defaults = (0.1, 0.25, 0.5, 0.75, 1.0)

    def _move(self, draw: Any) -> Any:
        return np.where(draw(None) < 0.5, 1.0, -1.0)


@final
class CategorySwaps(TabularCorruption):
    """Replaces cells by those of random reference rows, each with the probability ``strength``.

    Frequent categories stay frequent. The new value can equal the old one: of the cells drawn,
    ``1 - sum(q**2)`` change where ``q`` are the shares of the categories.

    Args:
        strengths: One for each severity, rising, at most 1.
        columns: Default: those of text, booleans, objects and pandas' categories. Columns of
            numbers are swapped if they are named.
    """

    name = "category_swaps"
    defaults = (0.05, 0.1, 0.2, 0.35, 0.5)
    most = 1.0
    kinds = ("category",)

    def _change(self, column: Column, cells: Any, strength: float, draw: Any) -> Any:
        swapped = (draw(0) < strength) & ~missing_cells(cells)
        rows = (draw(1)[swapped] * len(column.observed)).astype(int)
        return swapped, column.observed[rows]


@final
class MissingValues(TabularCorruption):
    """Loses cells, each with the probability ``strength``.

    With ``fill="nan"`` they become NaN (in a DataFrame the column's own missing value), which the
    model must accept; integers, booleans and text of an array become floats or objects. With
    ``fill="median"`` they get the median of the reference rows, or the most frequent category, as
    a simple imputer would.

    Args:
        strengths: One for each severity, rising, at most 1.
        columns: Default: all but dates and other kinds.
        fill: ``"nan"`` or ``"median"``.
    """

    name = "missing_values"
    defaults = (0.05, 0.1, 0.2, 0.35, 0.5)
    most = 1.0

    def __init__(
        self, *, strengths: Sequence[float] | None = None, columns: Any = None, fill: str = "nan"
    ) -> None:
        super().__init__(strengths=strengths, columns=columns)
        self.fill: str = check_choice(fill, ("nan", "median"), name="fill")
        self._note = f", fill {self.fill}"
        self.may_lose_values = self.fill == "nan"

    def _change(self, column: Column, cells: Any, strength: float, draw: Any) -> Any:
        lost = (draw(0) < strength) & ~missing_cells(cells)
        if self.fill == "nan":
            return lost, None
        seen = column.observed
        values = np.empty(int(lost.sum()), seen.dtype)
        common = Counter(seen.tolist()).most_common(1)[0][0]
        values[:] = np.median(seen) if column.is_number else common
        return lost, values
