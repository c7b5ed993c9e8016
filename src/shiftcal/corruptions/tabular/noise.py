"""Noise in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

from shiftcal._checks import check_flag
from shiftcal.corruptions.tabular._column import Column
from shiftcal.corruptions.tabular._moved import moved
from shiftcal.corruptions.tabular._table import Change
from shiftcal.corruptions.tabular.base import Draws, TabularCorruption


@final
class Noise(TabularCorruption):
    """Adds normal noise to every number: ``x + strength * scale * N(0, 1)``.

    ``scale`` is a robust standard deviation of the column in the reference rows (its interquartile
    range by 1.349; the plain standard deviation where that is 0). A strength is so the standard
    deviation of the noise in units of the column's own. Columns that have one value only stay as
    they are. Whole numbers stay whole numbers: the sum is rounded, and does not leave the range of
    their type.

    Args:
        strengths: One for each severity, rising.
        columns: Which columns; by default all that hold numbers, but not booleans. Where numbers
            are codes of categories, name the others.
        clip: Stop at the ends of the range seen in the reference rows. Beyond it many models become
            surer instead of less sure, and a ladder along which confidence rises is of no use.
    """

    defaults: ClassVar[tuple[float, ...]] = (0.1, 0.25, 0.5, 1.0, 2.0)
    kinds: ClassVar[tuple[str, ...]] = ("float", "integer")
    named_kinds: ClassVar[tuple[str, ...]] = ("float", "integer")

    def __init__(
        self,
        *,
        strengths: Sequence[float] | None = None,
        columns: Sequence[Any] | None = None,
        clip: bool = True,
    ) -> None:
        super().__init__(strengths=strengths, columns=columns)
        self.clip = check_flag(clip, name="clip")

    @property
    def description(self) -> str:
        """The name, with the strengths, and whether the range is kept."""
        return f"{super().description}{'' if self.clip else ', beyond the range'}"

    def _change(self, column: Column, cells: Any, strength: float, draws: Draws) -> Change | None:
        from scipy.special import ndtri

        deviates = ndtri(draws.cells(0))
        return moved(column, cells, strength * column.scale * deviates, clip=self.clip)
