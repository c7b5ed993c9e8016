"""Corruptions of tabular rows: an array ``(n, d)`` or a pandas DataFrame in, the same kind out.

``tabular.names()`` lists them, ``tabular.get("noise")`` and ``tabular.Noise`` give the class.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from shiftcal import errors
from shiftcal.checks import check_choice, check_flag
from shiftcal.corruptions.inputs import InputCorruption, check_strengths, uniforms
from shiftcal.errors import InputError
from shiftcal.registry import TABULAR

names = TABULAR.names
get = TABULAR.get

Ladder: TypeAlias = Sequence[float] | None
_NORMAL_IQR = 1.3489795003921634  # interquartile range of the standard normal distribution


def kind_of(column: Any) -> str:
    """``"number"``, ``"category"`` (text, booleans, objects) or ``"other"`` (dates, sparse)."""
    if column.dtype.kind in "mMc" or str(column.dtype).startswith(("Sparse", "period")):
        return "other"
    return "number" if column.dtype.kind in "iuf" else "category"


def missing_cells(column: Any) -> NDArray[np.bool_]:
    """Where an array ``(n,)`` or a Series holds None, NaN or another missing value."""
    if hasattr(column, "isna"):
        return np.asarray(column.isna(), np.bool_)
    return np.array([x is None or x != x for x in column.tolist()])  # noqa: PLR0124


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
        columns_: The columns it changes, each with its values in the reference rows that are
            neither missing nor infinite.
    """

    defaults: ClassVar[tuple[float, ...]]
    most: ClassVar[float | None] = None
    kinds: ClassVar[tuple[str, ...]] = ("number", "category")
    columns_: dict[Any, NDArray[Any]]

    def __init__(self, *, strengths: Ladder = None, columns: Any = None) -> None:
        chosen = self.defaults if strengths is None else strengths
        self.strengths = check_strengths(chosen, most=self.most)
        self.columns = columns

    def fit(self, rows: Any) -> Self:
        """Learn the columns from reference rows: the calibration set, or the training set.

        Raises:
            InputError: If they are no table, or no column can be changed by this corruption.
        """
        table, found = _columns(rows, self.columns or ()), {}
        for label in table if self.columns is None else self.columns:
            cells, kind = table[label], kind_of(table[label])
            if self.columns is None and kind not in self.kinds:
                continue
            if kind == "other" or (self.kinds == ("number",) and kind != "number"):
                raise InputError(f"{self.name} cannot change column {label!r} ({cells.dtype}).")
            observed = np.array(cells[~missing_cells(cells)])
            if kind == "number":
                observed = observed.astype(np.float64)
                observed = observed[np.isfinite(observed)]
            found[label] = observed
        if not found:
            raise InputError(f"{self.name} needs columns of kind {' or '.join(self.kinds)}.")
        self.columns_ = found
        return self

    def fitted_to(self, inputs: Any) -> Self:
        """Itself if it is fitted, else a copy that is fitted to these rows."""
        return self if hasattr(self, "columns_") else copy.copy(self).fit(inputs)

    def _apply(self, inputs: Any, severity: int, *, seed: int, first_index: int) -> Any:
        if not hasattr(self, "columns_"):
            raise errors.NotFittedError(f"{self.name} is not fitted; call fit(rows) first.")
        table = _columns(inputs, self.columns_)
        streams = self._streams(len(inputs), severity, seed=seed, first_index=first_index)
        shared = self._streams(1, 0, seed=seed, first_index=0)
        for j, (label, observed) in enumerate(self.columns_.items()):

            def draw(i: int | None, j: int = j) -> NDArray[np.float64]:
                return uniforms(shared, j) if i is None else uniforms(streams, 4 * j + i)

            if len(observed):
                change = self._change(observed, table[label], self.strengths[severity - 1], draw)
                table[label] = _changed(table[label], *change)
        if isinstance(inputs, np.ndarray):
            return np.stack(list(table.values()), axis=1)
        return type(inputs)(table)

    @abstractmethod
    def _change(self, observed: NDArray[Any], cells: Any, strength: float, draw: Any) -> Any:
        """The cells of a column that change ``(n,)``, and their new values.

        The values are ``None`` for cells that become missing.

        Args:
            observed: Its values in the reference rows, at least one.
            cells: The column, a Series or an array ``(n,)``; not to be changed.
            strength: Of the severity.
            draw: ``draw(i)``, i from 0 to 3, gives a number between 0 and 1 for every cell, and
                ``draw(None)`` one for the column.
        """


def _columns(rows: Any, wanted: Iterable[Any]) -> dict[Any, Any]:
    """The columns of a table by name, of an array by position; those wanted must be there."""
    frame = hasattr(rows, "isetitem")
    if not frame and not (type(rows) is np.ndarray and rows.ndim == 2):
        raise InputError(f"rows must be an array (n, d) or a pandas DataFrame; got {type(rows)}.")
    labels = list(rows.columns) if frame else list(range(rows.shape[1]))
    if 0 in rows.shape or len(set(labels)) < len(labels):
        raise InputError(f"rows must have cells, and columns different names; got {labels}.")
    if absent := [label for label in wanted if label not in labels]:
        raise InputError(f"rows must have a column {absent[0]!r}; they have {labels[:20]}.")
    return {name: rows.iloc[:, j] if frame else rows[:, j] for j, name in enumerate(labels)}


def _changed(cells: Any, changed: NDArray[np.bool_], values: NDArray[Any] | None) -> Any:
    """A column with other values, or missing ones, in a type that holds them."""
    series, words = not isinstance(cells, np.ndarray), cells.dtype.kind in "US"
    if values is None:
        kept = cells.astype(object) if words else cells
        return cells.mask(changed) if series else np.where(changed, np.nan, kept)
    dtype = getattr(cells.dtype, "numpy_dtype", cells.dtype)
    if values.dtype.kind == "f" and dtype.kind in "iu":
        ends = np.iinfo(dtype)
        values = np.clip(np.rint(values), ends.min, ends.max).astype(dtype)
    out = cells.astype(np.result_type(cells, values)) if words else cells.copy()
    (out.iloc if series else out)[np.flatnonzero(changed)] = values
    return out


class _Shift(TabularCorruption):
    """Moves numbers; stops at the ends of the observed range if ``clip`` is true."""

    kinds = ("number",)

    def __init__(self, *, strengths: Ladder = None, columns: Any = None, clip: bool = True) -> None:
        super().__init__(strengths=strengths, columns=columns)
        self.clip = check_flag(clip, name="clip")
        self._note = "" if self.clip else ", beyond the range"

    def _change(self, observed: NDArray[Any], cells: Any, strength: float, draw: Any) -> Any:
        low, high = np.quantile(observed, [0.25, 0.75])
        scale = float(high - low) / _NORMAL_IQR or float(observed.std())
        moved = ~missing_cells(cells)
        moved[moved] = np.isfinite(np.asarray(cells[moved], np.float64))
        before = np.asarray(cells[moved], np.float64)
        values = before + np.broadcast_to(strength * scale * self._move(draw), moved.shape)[moved]
        if self.clip:  # values already outside the range stay where they are
            low, high = np.minimum(before, observed.min()), np.maximum(before, observed.max())
            values = np.clip(values, low, high)
        return moved, values

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

    def _change(self, observed: NDArray[Any], cells: Any, strength: float, draw: Any) -> Any:
        swapped = (draw(0) < strength) & ~missing_cells(cells)
        return swapped, observed[(draw(1)[swapped] * len(observed)).astype(int)]


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

    def __init__(self, *, strengths: Ladder = None, columns: Any = None, fill: str = "nan") -> None:
        super().__init__(strengths=strengths, columns=columns)
        self.fill: str = check_choice(fill, ("nan", "median"), name="fill")
        self._note = f", fill {self.fill}"
        self.may_lose_values = self.fill == "nan"

    def _change(self, observed: NDArray[Any], cells: Any, strength: float, draw: Any) -> Any:
        lost = (draw(0) < strength) & ~missing_cells(cells)
        if self.fill == "nan":
            return lost, None
        number = kind_of(cells) == "number"
        usual = np.median(observed) if number else Counter(observed.tolist()).most_common(1)[0][0]
        return lost, np.full(int(lost.sum()), usual, observed.dtype)
