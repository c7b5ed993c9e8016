"""Columns that have drifted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from shiftcal._checks import check_flag
from shiftcal.corruptions.tabular._column import Column
from shiftcal.corruptions.tabular._moved import moved
from shiftcal.corruptions.tabular._table import Change
from shiftcal.corruptions.tabular.base import Draws, TabularCorruption


@final
class Drift(TabularCorruption):
    """Moves whole columns up or down, all rows alike: ``x + strength * scale * (±1)``.

    As where an instrument was exchanged or another site measures. Which way a column goes is drawn
    once from the seed, and is the same at all severities. ``scale`` is as for :class:`Noise`.

    Args:
        strengths: One for each severity, rising.
        columns: Which columns; by default all that hold numbers, but not booleans.
        clip: Stop at the ends of the range seen in the reference rows, as for :class:`Noise`.
    """

    defaults: ClassVar[tuple[float, ...]] = (0.1, 0.25, 0.5, 0.75, 1.0)
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
        way = 1.0 if draws.once() < 0.5 else -1.0
        by = np.full(len(cells), strength * column.scale * way)
        return moved(column, cells, by, clip=self.clip)
