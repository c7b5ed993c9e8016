"""The window as it was at a look, of which the choice and the estimate are worked out if asked."""

from __future__ import annotations

import copy
from functools import cached_property

from shiftcal.estimates import AccuracyEstimate, AccuracyEstimator
from shiftcal.methods import Method
from shiftcal.methods._selection import Selection
from shiftcal.monitoring._blocks import Blocks


class Snapshot:
    """What was in the window at a look.

    Args:
        blocks: Its sums.
        method: Fitted, left as it is.
        estimator: Fitted, or ``None``.
        level: Coverage of the estimate's interval.
    """

    def __init__(
        self, blocks: Blocks, method: Method, estimator: AccuracyEstimator | None, level: float
    ) -> None:
        self.blocks = blocks
        self._method = method
        self._estimator = estimator
        self._level = level

    @cached_property
    def selection(self) -> Selection:
        """What the method chooses for the window."""
        return copy.copy(self._method).adapt_moments(self.blocks.grouped)

    @cached_property
    def estimate(self) -> AccuracyEstimate | None:
        """The accuracy on the window."""
        if self._estimator is None:
            return None
        return self._estimator.estimate_moments(self.blocks.grouped, level=self._level)
