"""Categories mistaken for others."""

from __future__ import annotations

from typing import Any, ClassVar, final

from shiftcal.corruptions.tabular._column import Column
from shiftcal.corruptions.tabular._kinds import missing_cells
from shiftcal.corruptions.tabular._table import Change
from shiftcal.corruptions.tabular.base import Draws, TabularCorruption


@final
class CategorySwaps(TabularCorruption):
    """Draws cells anew from their column, each with a probability that is the strength.

    The new value is that of a reference row drawn at random, so frequent categories stay frequent
    and the column as a whole looks as before. It can be the old one: of the cells that are drawn,
    ``1 - sum(q**2)`` change where ``q`` are the shares of the categories.

    Args:
        strengths: One for each severity, rising, at most 1.
        columns: Which columns; by default those of text, booleans and pandas' categories. Columns
            of numbers are taken too if they are named: codes of categories, or measurements that
            shall be mistaken for those of other rows.
    """

    defaults: ClassVar[tuple[float, ...]] = (0.05, 0.1, 0.2, 0.35, 0.5)
    most: ClassVar[float | None] = 1.0
    kinds: ClassVar[tuple[str, ...]] = ("category",)
    named_kinds: ClassVar[tuple[str, ...]] = ("category", "float", "integer")

    def _change(self, column: Column, cells: Any, strength: float, draws: Draws) -> Change | None:
        if not len(column.observed):
            return None
        swapped = (draws.cells(0) < strength) & ~missing_cells(cells)
        rows = (draws.cells(1)[swapped] * len(column.observed)).astype(int)
        return Change(swapped, column.observed[rows], whole=column.kind == "integer")
