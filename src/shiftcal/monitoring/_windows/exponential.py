"""All rows, each counting less the older it is."""

from __future__ import annotations

from typing import final

import numpy as np

from shiftcal.monitoring._windows.base import MOST_BLOCKS, Plan, Window, block_rows

# Blocks older than this count less than a thirtieth, and are let go.
_HALF_LIVES = 5


@final
class Exponential(Window):
    """All rows of the last five half-lives; those of a block of age ``a`` rows count ``2^(-a/h)``.

    It is as noisy as a sliding window of about ``2.8 h`` rows, ``(Σ w)² / Σ w²``, and is taken for
    one of that size where the size matters.

    Args:
        half_life: ``h``, rows after which a row counts half, a multiple of ``blocks``.
        blocks: Parts that a half-life is kept in; a choice is made at the end of every one.
    """

    def __init__(self, *, half_life: int = 700, blocks: int = 4) -> None:
        self.half_life = half_life
        self.blocks = blocks

    def plan(self) -> Plan:
        """Powers of a half, one for each block."""
        most = MOST_BLOCKS // _HALF_LIVES
        block, parts = block_rows(self.half_life, self.blocks, name="half_life", most_blocks=most)
        return Plan(block, 0.5 ** (np.arange(_HALF_LIVES * parts) / parts))
