"""The spans of the past that are compared with the clean set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.monitoring._windows.base import Plan

# A span shorter than the window by less than this factor tells nothing new.
_APART = 1.5


class Scales(NamedTuple):
    """Spans of blocks: the last 1, 2, 4, ... and the window itself.

    Attributes:
        block: Rows of a block.
        weights: ``(s, b)`` what a block counts, by age, the newest first.
        needed: ``(s,)`` blocks that must be there.
    """

    block: int
    weights: NDArray[np.float64]
    needed: NDArray[np.int64]

    @property
    def rows(self) -> NDArray[np.float64]:
        """``(s,)`` rows of unweighted samples that are as noisy."""
        return self.block * self.weights.sum(axis=1) ** 2 / (self.weights**2).sum(axis=1)

    @property
    def totals(self) -> NDArray[np.float64]:
        """``(s,)`` what the rows of a full span weigh."""
        return self.block * self.weights.sum(axis=1)


def scales_of(plan: Plan) -> Scales:
    """The spans of a window."""
    noisy = plan.weights.sum() ** 2 / (plan.weights**2).sum()
    spans: list[int] = []
    while 2 ** len(spans) * _APART < noisy:
        spans.append(2 ** len(spans))
    weights = [(np.arange(plan.blocks) < span).astype(np.float64) for span in spans]
    return Scales(
        plan.block, np.array([*weights, plan.weights]), np.array([*spans, plan.blocks], np.int64)
    )
