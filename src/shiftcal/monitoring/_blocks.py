"""The blocks of a window, as methods and estimators take them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shiftcal.monitoring._columns import UNIT
from shiftcal.monitoring._windows.base import Plan
from shiftcal.rehearsals import Grouped


class Blocks:
    """Sums of the blocks in a window, copied.

    Weights are scaled so that all blocks together weigh as much as an unweighted sample that is as
    noisy: ``n = (Σ w)² / Σ w²`` times the rows of a block.

    Args:
        ring: ``(b, 2 k + 4)``.
        head: Place of the next block.
        filled: Blocks that are there.
        plan: The window.
    """

    def __init__(self, ring: NDArray[np.int64], head: int, filled: int, plan: Plan) -> None:
        self._ring = ring.copy()
        self._by_age = (head, filled)
        self._plan = plan

    @cached_property
    def grouped(self) -> Grouped:
        """The blocks as groups of rows, the newest first."""
        head, filled = self._by_age
        sums = UNIT * self._ring[(head - 1 - np.arange(filled)) % len(self._ring)]
        w = self._plan.weights[:filled]
        scaled = w * (w.sum() / (w**2).sum())
        sums = sums * scaled[:, None]
        return Grouped(sums[:, :-2], self._plan.block * scaled, float(sums[:, -2].sum()))
