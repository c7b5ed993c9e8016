"""Windows: how the past of a stream is weighted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count
from shiftcal.errors import InputError
from shiftcal.persistence import Estimator

# --------------------------------------------------------------------------------------
# The contract of a window.
# --------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------
# All rows, each counting less the older it is.
# --------------------------------------------------------------------------------------

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

    name: ClassVar[str] = "exponential"

    def __init__(self, *, half_life: int = 700, blocks: int = 4) -> None:
        self.half_life = half_life
        self.blocks = blocks

    def plan(self) -> Plan:
        """Powers of a half, one for each block."""
        most = MOST_BLOCKS // _HALF_LIVES
        block, parts = block_rows(self.half_life, self.blocks, name="half_life", most_blocks=most)
        return Plan(block, 0.5 ** (np.arange(_HALF_LIVES * parts) / parts))


# --------------------------------------------------------------------------------------
# The last rows, each counting the same.
# --------------------------------------------------------------------------------------


@final
class Sliding(Window):
    """The last ``rows`` rows, each counting the same; it moves on by ``rows / blocks``.

    Args:
        rows: Rows of the window, a multiple of ``blocks``.
        blocks: Parts it is kept in. More are seen sooner, and cost more: a choice is made at the
            end of every one.
    """

    name: ClassVar[str] = "sliding"

    def __init__(self, *, rows: int = 2000, blocks: int = 10) -> None:
        self.rows = rows
        self.blocks = blocks

    def plan(self) -> Plan:
        """Ones, for all blocks."""
        block, blocks = block_rows(self.rows, self.blocks, name="rows", most_blocks=MOST_BLOCKS)
        return Plan(block, np.ones(blocks))


# --------------------------------------------------------------------------------------
# What is summed over the rows of a block: whole numbers of ``2^-40``, in these columns.
#
# 0: p_max; 1: entropy; 2 to k + 1: ``p``; k + 2 to 2 k + 1: ``p²``; 2 k + 2: p_max²; 2 k + 3: minus
# the logarithm of ``1 - p_max``. All are of the raw softmax, whatever calibration is in use. Sums
# of
# floats depend on their order and grouping; sums of whole numbers do not, so that no batch of any
# size changes a decision.
# --------------------------------------------------------------------------------------

BITS = 40
UNIT = 2.0**-BITS
# What is left of 1 beside p_max is taken for no less: its logarithm would be infinite.
FLOOR = 1e-6
# Features of a row that a shift is seen by.
FEATURES = ("confidence", "squared confidence", "entropy", "concentration", "log-remainder")


def n_columns(k: int) -> int:
    """Columns for ``k`` classes."""
    return 2 * k + 4


def features(sums: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums ``(..., 5)`` of the features over rows: p_max, p_max², entropy, ``Σ p²``, the last.

    Args:
        sums: ``(..., 2 k + 4)``.
    """
    k = (sums.shape[-1] - 4) // 2
    concentration = sums[..., 2 + k : 2 + 2 * k].sum(axis=-1)
    columns = (
        sums[..., 0],
        sums[..., 2 * k + 2],
        sums[..., 1],
        concentration,
        sums[..., 2 * k + 3],
    )
    return UNIT * np.stack(columns, axis=-1)
