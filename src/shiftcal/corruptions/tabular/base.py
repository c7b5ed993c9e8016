"""The contract of a corruption of tabular rows."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions._input_corruption import InputCorruption
from shiftcal.corruptions._keys import key_bits, stream_keys, uniforms
from shiftcal.corruptions._rising import check_strengths
from shiftcal.corruptions.tabular._column import Column
from shiftcal.corruptions.tabular._kinds import kind_of
from shiftcal.corruptions.tabular._table import Change, Table
from shiftcal.errors import InputError

# Draws a cell may take; those of the next column follow.
_DRAWS = 4


@dataclass(frozen=True)
class Draws:
    """The random numbers of one column.

    Attributes:
        streams: The key of every row, ``(n,)``.
        column: The number of the column.
        of_columns: The key that all rows and severities share, ``(1,)``.
    """

    streams: NDArray[np.uint64]
    column: int
    of_columns: NDArray[np.uint64]

    def cells(self, number: int) -> NDArray[np.float64]:
        """One number between 0 and 1 for every cell, ``(n,)``; ``number`` is 0 to 3."""
        return uniforms(self.streams, _DRAWS * self.column + number)

    def once(self) -> float:
        """One number between 0 and 1 for the column, the same in all rows and severities."""
        return float(uniforms(self.of_columns, self.column)[0])


class TabularCorruption(InputCorruption):
    """Rows made harder to classify, column by column, as far as they were seen in other rows.

    :meth:`fit` learns the columns from reference rows: what they hold, which values, how far they
    spread. A new corruption is one file in this package: a final subclass with ``defaults`` for
    its strengths, the kinds of columns it is for, and ``_change``. Columns that it does not touch
    come out as they went in, and so do missing cells.

    Args:
        strengths: One for each severity, rising; what they mean is said with each class.
        columns: Which columns: names in a DataFrame, positions in an array. By default all of the
            kinds it is for.

    Attributes:
        defaults: Strengths of the five severities.
        most: The largest strength that makes sense, if there is one.
        kinds: Kinds of columns it takes unasked.
        named_kinds: Kinds of columns it takes if they are named.
        columns_: What was learnt of the columns it changes.
    """

    defaults: ClassVar[tuple[float, ...]]
    most: ClassVar[float | None] = None
    kinds: ClassVar[tuple[str, ...]]
    named_kinds: ClassVar[tuple[str, ...]]

    columns_: tuple[Column, ...]

    def __init__(
        self, *, strengths: Sequence[float] | None = None, columns: Sequence[Any] | None = None
    ) -> None:
        given = self.defaults if strengths is None else strengths
        self.strengths = check_strengths(given, most=self.most)
        self.columns = _as_list(columns)
        self._in_frame = False
        self._width = 0

    def fit(self, rows: Any) -> Self:
        """Learn the columns from reference rows: the calibration set, or the training set.

        Args:
            rows: An array ``(n, d)``, or a pandas DataFrame; not changed.

        Raises:
            InputError: If they are neither, or no column can be changed by this corruption.
        """
        table = Table(rows)
        if self.columns is None:
            found = [Column.of(x, table.column(j)) for j, x in enumerate(table.labels)]
            found = [column for column in found if column.kind in self.kinds]
            if not found:
                raise InputError(
                    f"{self.name} needs columns that hold {_or(self.kinds)}; there is none among "
                    f"{table.kinds()}. Name those you mean: columns=[...]."
                )
        else:
            found = [Column.of(x, table.column(table.position(x))) for x in self.columns]
            for column in found:
                self._check_kind(column.label, column.kind)
        self.columns_ = tuple(found)
        self._in_frame, self._width = table.is_frame, len(table.labels)
        return self

    def fitted_to(self, inputs: Any) -> Self:
        """Itself if it is fitted, else a copy that is fitted to these rows."""
        return self if hasattr(self, "columns_") else copy.copy(self).fit(inputs)

    def _apply(self, inputs: Any, severity: int, *, seed: int, first_index: int) -> Any:
        self._require_fitted()
        table = Table(inputs)
        self._check_alike(table)
        streams = self._streams(len(inputs), severity, seed=seed, first_index=first_index)
        shared = key_bits(
            stream_keys(seed=seed, corruption=self.name, severity=0, indices=np.zeros(1, np.int64))
        )
        changes = {}
        for number, column in enumerate(self.columns_):
            position = table.position(column.label)
            cells = table.column(position)
            kind = kind_of(cells)
            if kind == "empty":
                continue
            self._check_kind(column.label, kind)
            draws = Draws(streams, number, shared)
            change = self._change(column, cells, self.strengths[severity - 1], draws)
            if change is not None:
                changes[position] = change
        return table.changed(changes)

    @abstractmethod
    def _change(self, column: Column, cells: Any, strength: float, draws: Draws) -> Change | None:
        """What happens to one column; ``None`` if nothing does.

        Args:
            column: What was learnt of it.
            cells: The column, a Series or an array ``(n,)``; not to be changed.
            strength: Of the severity.
            draws: The random numbers.
        """

    def _require_fitted(self) -> None:
        if not hasattr(self, "columns_"):
            from shiftcal.errors import NotFittedError

            kind = type(self).__name__
            raise NotFittedError(
                f"{self.name} must see reference rows before it is used: their columns say what "
                f"can happen to a cell. Pass {kind}().fit(calibration_rows)."
            )

    def _check_alike(self, table: Table) -> None:
        if table.is_frame != self._in_frame:
            seen = "a DataFrame" if self._in_frame else "an array"
            raise InputError(
                f"rows must come as those {self.name} was fitted to, in {seen}; got "
                f"{table.container}."
            )
        if not table.is_frame and len(table.labels) != self._width:
            raise InputError(
                f"rows must have the {self._width} columns that {self.name} was fitted to; got "
                f"{len(table.labels)}."
            )

    def _check_kind(self, label: Any, kind: str) -> None:
        if kind not in self.named_kinds and kind != "empty":
            raise InputError(
                f"{self.name} changes columns that hold {_or(self.named_kinds)}; column {label!r} "
                f"holds {_SAID[kind]}. Leave it out of columns, or give it another type."
            )


_SAID = {
    "float": "numbers",
    "integer": "whole numbers",
    "category": "categories",
    "empty": "nothing",
    "other": "dates or something else",
}


def _or(kinds: Sequence[str]) -> str:
    said = [_SAID[kind] for kind in kinds if kind != "integer" or "float" not in kinds]
    return " or ".join(said)


def _as_list(columns: object) -> list[Any] | None:
    if columns is None:
        return None
    given = [columns] if isinstance(columns, (str, int)) else list(columns)  # type: ignore[call-overload]
    if not given:
        raise InputError("columns must name one at least, or be left out for all that can change.")
    if len(set(given)) < len(given):
        raise InputError(f"columns must be named once each; got {given}.")
    return given
