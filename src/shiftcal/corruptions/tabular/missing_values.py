"""Cells that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from shiftcal._checks import check_choice
from shiftcal.corruptions.tabular._column import Column
from shiftcal.corruptions.tabular._kinds import missing_cells
from shiftcal.corruptions.tabular._table import Change
from shiftcal.corruptions.tabular.base import Draws, TabularCorruption

_ALL = ("float", "integer", "category")


@final
class MissingValues(TabularCorruption):
    """Loses cells: each on its own, with a probability that is the strength.

    With ``fill="nan"`` they are NaN (in a DataFrame whatever stands for a missing value in the
    column), which the model must be able to take. Whole numbers and booleans then become floats
    or objects, since they know no NaN; so does text of an array. With ``fill="median"`` they get
    what the reference rows have in the middle: the median of numbers, the most frequent category.
    That is what a simple imputer in front of the model would make of them.

    Args:
        strengths: One for each severity, rising, at most 1.
        columns: Which columns; by default all but those of dates and other kinds.
        fill: What stands in a lost cell, ``"nan"`` or ``"median"``.
    """

    defaults: ClassVar[tuple[float, ...]] = (0.05, 0.1, 0.2, 0.35, 0.5)
    most: ClassVar[float | None] = 1.0
    kinds: ClassVar[tuple[str, ...]] = _ALL
    named_kinds: ClassVar[tuple[str, ...]] = _ALL

    def __init__(
        self,
        *,
        strengths: Sequence[float] | None = None,
        columns: Sequence[Any] | None = None,
        fill: str = "nan",
    ) -> None:
        super().__init__(strengths=strengths, columns=columns)
        self.fill: str = check_choice(fill, ("nan", "median"), name="fill")
        self.may_lose_values = self.fill == "nan"

    @property
    def description(self) -> str:
        """The name, with the strengths and the fill."""
        return f"{super().description}, fill {self.fill}"

    def _change(self, column: Column, cells: Any, strength: float, draws: Draws) -> Change | None:
        lost = (draws.cells(0) < strength) & ~missing_cells(cells)
        if self.fill == "nan":
            return Change(lost, None)
        if not len(column.observed):
            return None
        filling = np.asarray([column.typical])
        if column.observed.dtype == object:
            filling = np.array([column.typical, None], dtype=object)[:1]
        return Change(lost, np.repeat(filling, int(lost.sum())), whole=column.kind == "integer")
