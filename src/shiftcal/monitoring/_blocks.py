"""The blocks of a window, as methods and estimators take them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shiftcal.monitoring._columns import UNIT
from shiftcal.monitoring._windows.base import Plan
from shiftcal.rehearsals import Grouped


class Weights:
    """What blocks count in a window that has so many of them.

    They are scaled so that all blocks together weigh as much as an unweighted sample that is as
    noisy: ``n = (Σ w)² / Σ w²`` times the rows of a block.

    Args:
        plan: The window.
        filled: Blocks that are there.
    """

    def __init__(self, plan: Plan, filled: int) -> None:
        w = plan.weights[:filled]
        scaled = w * (w.sum() / (w**2).sum()) if filled else w
        self._ages = np.arange(1, filled + 1)
        self._counts = plan.block * scaled
        self._units = UNIT * scaled[:, None]

    def grouped(self, ring: NDArray[np.int64], head: int) -> Grouped:
        """The blocks as groups of rows, the newest first.

        Args:
            ring: ``(b, 2 k + 4)``.
            head: Place of the next block.
        """
        sums = ring[(head - self._ages) % len(ring)] * self._units
        return Grouped(sums[:, :-2], self._counts, float(sums[:, -2].sum()))


class Blocks:
    """Sums of the blocks in a window, copied.

    Args:
        ring: ``(b, 2 k + 4)``.
        head: Place of the next block.
        weights: What they count.
    """

    def __init__(self, ring: NDArray[np.int64], head: int, weights: Weights) -> None:
        self._ring = ring.copy()
        self._head = head
        self._weights = weights

    @cached_property
    def grouped(self) -> Grouped:
        """The blocks as groups of rows, the newest first."""
        return self._weights.grouped(self._ring, self._head)
