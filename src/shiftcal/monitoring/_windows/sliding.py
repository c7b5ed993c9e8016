"""The last rows, each counting the same."""

from __future__ import annotations

from typing import final

import numpy as np

from shiftcal.monitoring._windows.base import MOST_BLOCKS, Plan, Window, block_rows


@final
class Sliding(Window):
    """The last ``rows`` rows, each counting the same; it moves on by ``rows / blocks``.

    Args:
        rows: Rows of the window, a multiple of ``blocks``.
        blocks: Parts it is kept in. More are seen sooner, and cost more: a choice is made at the
            end of every one.
    """

    def __init__(self, *, rows: int = 2000, blocks: int = 10) -> None:
        self.rows = rows
        self.blocks = blocks

    def plan(self) -> Plan:
        """Ones, for all blocks."""
        block, blocks = block_rows(self.rows, self.blocks, name="rows", most_blocks=MOST_BLOCKS)
        return Plan(block, np.ones(blocks))
