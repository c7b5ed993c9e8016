"""A table: what its columns mean, and in each cell a number with its interval and its source."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from numbers import Integral, Real
from typing import Any

from shiftcal.errors import InputError
from shiftcal.report.tables._numbers import printed


@dataclass(frozen=True)
class Column:
    """What the numbers of a column are.

    Attributes:
        name: Plain text, as every text of a table: each format does its own escaping.
        unit: Of the numbers as they are, such as ``%``; shown as ``name (unit)``.
        group: Header over this and the neighbouring columns of the same group.
        digits: Printed after the point. The CSV has all of them.
        lower_is_better: None if no number of the column is better than another.
    """

    name: str
    unit: str = field(default="", kw_only=True)
    group: str = field(default="", kw_only=True)
    digits: int = field(default=2, kw_only=True)
    lower_is_better: bool | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.digits, int) or self.digits < 0:
            raise InputError(
                f"digits of the column {self.name!r} must be a whole number, 0 or more; "
                f"got {self.digits!r}."
            )

    @property
    def header(self) -> str:
        """The name with the unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def key(self) -> str:
        """The group and the name: what tells the column from all others, and heads the CSV."""
        return f"{self.group} {self.name}" if self.group else self.name


@dataclass(frozen=True)
class Cell:
    """A number, a word, or nothing.

    Attributes:
        value: In the unit of the column. None is a missing value.
        low: Lower end of the interval around it, or None.
        high: Upper end, given exactly if ``low`` is.
        by_ends: Whether the interval is printed by its ends even where it lies evenly around the
            value: for a range, which ± would make look like a confidence interval.
        mark: Whether it is printed bold.
        source: Where it comes from, such as the file of the arrays behind it. Only the CSV has it.
    """

    value: float | str | None
    low: float | None = None
    high: float | None = None
    by_ends: bool = field(default=False, kw_only=True)
    mark: bool = field(default=False, kw_only=True)
    source: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            object.__setattr__(self, name, _plain(name, getattr(self, name)))
        if self.low is None and self.high is None:
            return
        if self.low is None or self.high is None or self.number is None:
            raise InputError(
                "an interval of a cell must have both ends, around a number; "
                f"got value={self.value!r}, low={self.low!r}, high={self.high!r}."
            )
        if self.low > self.high:
            raise InputError(
                f"low of a cell must not exceed high; got low={self.low!r}, high={self.high!r}."
            )

    @property
    def number(self) -> float | None:
        """The value, unless it is a word."""
        return None if isinstance(self.value, str) else self.value


@dataclass(frozen=True)
class Row:
    """A label and a cell for each column.

    Attributes:
        label: What the row is about.
        cells: As many as there are columns.
        rule_before: Whether a line sets it off from the rows above, where the format has lines.
        ranked: Whether its numbers can be the best of their columns. Not for what competes with
            nothing: a bound, a reference, numbers of others.
    """

    label: str
    cells: tuple[Cell, ...]
    rule_before: bool = field(default=False, kw_only=True)
    ranked: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", tuple(self.cells))
        for cell in self.cells:
            if not isinstance(cell, Cell):
                raise InputError(
                    f"cells of the row {self.label!r} must be Cell objects; "
                    f"got {cell!r}. Write Cell({cell!r})."
                )


@dataclass(frozen=True)
class Table:
    """Rows under columns.

    Attributes:
        title: One line above, or empty.
        columns: At least one; no two with the same group and name.
        rows: Each has one cell for each column.
        note: Below the table.
        corner: Header of the labels, such as ``Method``.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = field(default="", kw_only=True)
    corner: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(self.rows))
        if not self.columns:
            raise InputError(f"the table {self.title!r} must have at least one column; got none.")
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise InputError(
                    f"the row {row.label!r} must have one cell for each of the "
                    f"{len(self.columns)} columns; got {len(row.cells)}."
                )
        twice = _first_repeated(self.headers)
        if twice is not None:
            raise InputError(
                f"columns of the table {self.title!r} must be told apart by group and name; "
                f"{twice!r} heads two columns of its CSV. Rename one."
            )

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """Each group with the number of its columns, from left to right; ungrouped under ''."""
        runs = groupby(self.columns, key=lambda column: column.group)
        return tuple((name, len(list(run))) for name, run in runs)

    @property
    def headers(self) -> tuple[str, ...]:
        """Headers of the CSV: the labels', then of each column its key and what else it has."""
        names = [self.corner or "label"]
        for index, column in enumerate(self.columns):
            names += [column.key, *(f"{column.key} {part}" for part in self.beside(index))]
        return tuple(names)

    def beside(self, index: int) -> tuple[str, ...]:
        """Which of low, high and source any cell of a column has."""
        cells = list(self.cells_of(index))
        ends = ("low", "high") if any(cell.low is not None for cell in cells) else ()
        return (*ends, "source") if any(cell.source for cell in cells) else ends

    def cells_of(self, index: int) -> Iterator[Cell]:
        """The cells of a column, from the top."""
        return (row.cells[index] for row in self.rows)

    def is_text(self, index: int) -> bool:
        """Whether a column has words and no number, and so stands to the left."""
        cells = list(self.cells_of(index))
        return any(isinstance(cell.value, str) for cell in cells) and not any(
            cell.number is not None for cell in cells
        )

    def marked(self) -> Table:
        """The same table with the best number of each column marked, and no other.

        Numbers that print the same are equally good, and all of them are marked. Rows that are
        not ranked take no part. Columns where nothing is better stay as they are.
        """
        best = [self._best(index) for index in range(len(self.columns))]
        return replace(self, rows=tuple(_marked(row, self.columns, best) for row in self.rows))

    def _best(self, index: int) -> str | None:
        """The best number of a column as it prints."""
        column = self.columns[index]
        ranked = (row.cells[index].number for row in self.rows if row.ranked)
        numbers = [number for number in ranked if number is not None]
        if column.lower_is_better is None or not numbers:
            return None
        return printed(min(numbers) if column.lower_is_better else max(numbers), column.digits)


def _marked(row: Row, columns: tuple[Column, ...], best: list[str | None]) -> Row:
    cells = list(row.cells)
    for index, (cell, column) in enumerate(zip(row.cells, columns, strict=True)):
        if column.lower_is_better is None:
            continue
        prints = None if cell.number is None else printed(cell.number, column.digits)
        cells[index] = replace(
            cell, mark=row.ranked and prints is not None and prints == best[index]
        )
    return replace(row, cells=tuple(cells))


def _plain(name: str, given: Any) -> Any:
    """Python's own number, so that its repr is a number and not the name of a type."""
    if given is None or (name == "value" and isinstance(given, str)):
        return given
    if isinstance(given, Integral):
        return int(given)
    if not isinstance(given, Real) or math.isnan(given):
        raise InputError(
            f"{name} of a cell must be a number (not NaN){' or text' * (name == 'value')}, or None "
            f"where there is none; got {given!r}."
        )
    return float(given)


def _first_repeated(names: tuple[str, ...]) -> str | None:
    return next((name for index, name in enumerate(names) if name in names[:index]), None)
