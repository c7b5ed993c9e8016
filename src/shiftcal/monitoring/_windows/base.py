"""The contract of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count
from shiftcal._estimator import Estimator
from shiftcal.errors import InputError

# Sums of a block are whole numbers of 2**-40, and those of so many rows fit into 64 bits.
MOST_BLOCK_ROWS = 100_000
MOST_BLOCKS = 1000


class Plan(NamedTuple):
    """A window in numbers.

    Attributes:
        block: Rows of a block, the step in which the window moves.
        weights: ``(b,)`` what the rows of a block count, by age, the newest block first.
    """

    block: int
    weights: NDArray[np.float64]

    @property
    def blocks(self) -> int:
        """Blocks that are kept."""
        return len(self.weights)

    @property
    def rows(self) -> int:
        """Rows in those blocks."""
        return self.block * self.blocks


class Window(Estimator, ABC):
    """How many of the last rows count, and how much; ``plan`` checks the settings."""

    kind: ClassVar[str] = "window"

    @abstractmethod
    def plan(self) -> Plan:
        """The window in numbers.

        Raises:
            InputError: If the settings cannot be used.
        """


def block_rows(value: object, blocks: object, *, name: str, most_blocks: int) -> tuple[int, int]:
    """Rows of a block and the number of blocks, where ``value`` rows are cut into ``blocks``."""
    parts = check_count(blocks, name="blocks", most=most_blocks)
    rows = check_count(value, name=name, least=parts, most=MOST_BLOCK_ROWS * parts)
    if rows % parts:
        below = rows - rows % parts
        raise InputError(
            f"{name} must be a multiple of blocks, so that all blocks are of one size; got {rows} "
            f"rows and {parts} blocks. Take {below} or {below + parts} rows."
        )
    return rows // parts, parts
