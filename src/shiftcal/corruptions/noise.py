"""Gaussian, shot, impulse and speckle noise."""

from __future__ import annotations

import functools
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions.corruption import Published, SeverityTable
from shiftcal.corruptions.filters import normal_medians


@final
class GaussianNoise(Published):
    """Independent normal noise on every channel value: ``x + N(0, s**2)``, ``x`` in [0, 1].

    A setting is the standard deviation ``s``. Values are clipped and cut to whole grey levels,
    as published: ``floor(255 (x + e))``, so that the mean falls by half a level.

    The noise takes 16 random bits a value, and 12 more in the tails: the probability of a level
    is right to 2**-15, and no noise exceeds 5.29 standard deviations.
    """

    name = "gaussian_noise"
    group = "noise"
    settings = SeverityTable(
        cifar=((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),
        tiny_imagenet=((0.04,), (0.08,), (0.12,), (0.15,), (0.18,)),
        imagenet=((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        # A pixel is a whole number of levels, so the cut can be made on the noise.
        return "add_noise", *step_tables(255 * setting[0])


@final
class ShotNoise(Published):
    """The counting noise of few photons: ``Poisson(c x) / c`` for every channel value.

    A setting is the number ``c`` of photons that make full brightness, so that few are severe.
    Values are clipped and cut to whole grey levels, as published. So black stays black, about
    half of the white values fall below white and none rises above, and with few photons only the
    levels ``floor(255 k / c)`` are left. The probability of every level is right to 2**-32.
    """

    name = "shot_noise"
    group = "noise"
    settings = SeverityTable(
        cifar=((500.0,), (250.0,), (100.0,), (75.0,), (50.0,)),
        tiny_imagenet=((250.0,), (100.0,), (50.0,), (30.0,), (15.0,)),
        imagenet=((60.0,), (25.0,), (12.0,), (5.0,), (3.0,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return "draw_levels", alias_table(level_masses(setting[0]))


@final
class ImpulseNoise(Published):
    """Salt and pepper: some values become 0 or 255, each with the same probability.

    A setting is the fraction of values that are replaced, salt and pepper together. Every channel
    value is drawn on its own, not every pixel, so that the specks are coloured: this is what
    scikit-image's ``random_noise`` does with an image in colour, and the published sets have it.
    A value that is replaced may have been 0 or 255 before.
    """

    name = "impulse_noise"
    group = "noise"
    settings = SeverityTable(
        cifar=((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),
        tiny_imagenet=((0.01,), (0.02,), (0.05,), (0.08,), (0.14,)),
        imagenet=((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return "salt_and_pepper", 2 * round(setting[0] * 2**31)


@final
class SpeckleNoise(Published):
    """Normal noise in proportion to the value: ``x + x N(0, s**2)``, on every channel value.

    A setting is the standard deviation ``s`` of the factor. Values are clipped and cut to whole
    grey levels, as published. Black stays black.

    The noise takes 16 random bits a value, and 12 more in the tails; no factor is further than
    5.29 standard deviations from 1.
    """

    name = "speckle_noise"
    group = "noise"
    settings = SeverityTable(
        cifar=((0.06,), (0.10,), (0.12,), (0.16,), (0.20,)),
        tiny_imagenet=((0.15,), (0.20,), (0.25,), (0.30,), (0.35,)),
        imagenet=((0.15,), (0.20,), (0.35,), (0.45,), (0.60,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        return "scale_noise", setting[0], *deviate_tables()


# --------------------------------------------------------------------------------------
# Small tables that turn 16 random bits into a normal deviate, and more bits in the tails.
#
# One bit is the sign; the other 15 choose one of 32,768 cells of equal probability of ``|z|``, of
# which the deviate is the median. A table of all cells would push the images out of the first-level
# cache, so only the outer cells, where neighbours differ much, stand in it one by one; further in,
# 16 cells share a column, within which the deviate is a straight line in the cell's number.
#
# The 32 outermost cells (``|z| > 3.30``, one value in 1,024) ask a second random number for one of
# 4,096 cells among them. The largest deviate is 5.29; what lies beyond has a probability of 1.2e-7.
# --------------------------------------------------------------------------------------

CELLS = 1 << 15
COLUMN = 16
SINGLE = CELLS - CELLS // 32  # the first cell that stands alone
TAIL = CELLS - 32  # the first cell that asks for more bits
TAIL_BITS = 12
# With this, max(cell // COLUMN, cell - SHIFT) is the cell's place in the table.
SHIFT = SINGLE - SINGLE // COLUMN
TAIL_PLACE = TAIL - SHIFT

# Deviates are kept in fixed point, with a column's slope below them in the same word: their
# change over a column in the same unit.
SLOPE_BITS = 12
UNIT = 2.0**-17


def cell_medians() -> NDArray[np.float64]:
    """``|z|`` at the middle of each of the 32,768 cells, read-only."""
    return normal_medians(0.5, CELLS)


def tail_medians() -> NDArray[np.float64]:
    """``|z|`` at the middle of each of the 4,096 cells of the tail, read-only."""
    return normal_medians(0.5 * (CELLS - TAIL) / CELLS, 1 << TAIL_BITS)


def step_tables(scale: float) -> tuple[NDArray[np.uint16], NDArray[np.int16]]:
    """``floor(scale * |z|)`` of the cells, and of the cells of the tail; nothing exceeds 255.

    The first is exact and compressed: ``(table[place] + cell % 16) >> 4`` is the step. A column
    has room for one change, which is enough for a scale up to 160.
    """
    steps = np.minimum(np.floor(scale * cell_medians()), 255).astype(np.uint16)
    columns = steps[:SINGLE].reshape(-1, COLUMN)
    sums = columns.astype(np.uint32).sum(axis=1)
    table = np.concatenate([sums, COLUMN * steps[SINGLE:]]).astype(np.uint16)
    tail = np.minimum(np.floor(scale * tail_medians()), 255).astype(np.int16)
    return table, tail


@functools.cache
def deviate_tables() -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """The deviates of the cells in fixed point with their slopes, and those of the tail."""
    columns = cell_medians()[:SINGLE].reshape(-1, COLUMN)
    slopes = np.rint((columns[:, -1] - columns[:, 0]) * COLUMN / (COLUMN - 1) / UNIT)
    starts = np.rint(np.concatenate([columns[:, 0], cell_medians()[SINGLE:]]) / UNIT)
    table = starts.astype(np.uint32) << np.uint32(SLOPE_BITS)
    table[: len(slopes)] |= slopes.astype(np.uint32)
    return table, tail_medians().astype(np.float32)


# --------------------------------------------------------------------------------------
# The grey levels that Poisson counts lead to, as tables read with one random number.
# --------------------------------------------------------------------------------------

LEVELS = 256
POISSON_TABLE_COLUMN = 1 << 24  # numbers of 32 bits that have the same first eight


def level_masses(rate: float) -> NDArray[np.int64]:
    """The distribution of ``floor(255 min(Poisson(rate x) / rate, 1))`` for every grey level.

    Returns:
        ``(256, 256)``, from the row's level to the column's, in units of 2**-32: rows sum to
        2**32, and no sum of neighbours is off by more than one unit.
    """
    counts = np.arange(int(rate + 12 * np.sqrt(rate) + 24))
    reached = (np.clip(counts / rate, 0, 1) * 255).astype(np.uint8)
    last = np.searchsorted(reached, np.arange(LEVELS), side="right") - 1
    rates = rate * (np.arange(LEVELS)[:, None] / 255)
    # Masses relative to that of no photon, or of 20 deviations below the mean: what is less likely
    # does not count, and nothing overflows.
    first = np.maximum(rates - 20 * np.sqrt(rates), 0)
    relative = np.where(counts > first, rates / np.maximum(counts, 1), 1.0).cumprod(axis=1)
    total = relative.cumsum(axis=1)
    ends = np.rint(total[:, last] / total[:, -1:] * 2.0**32).astype(np.int64)
    ends[:, -1] = 1 << 32
    return np.diff(ends, axis=1, prepend=0)


def alias_table(masses: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Walker's (1977) alias table of each row of masses, so that one comparison draws from it.

    The first eight bits of a random number choose a column; if the other 24 are below the upper
    24 bits of its entry, the column is the result, otherwise the lower eight bits of the entry
    are. Every mass is kept exactly.

    Args:
        masses: ``(r, 256)``, rows sum to 2**32.

    Returns:
        ``(r * 256,)``.
    """
    left = masses.copy()
    rows = np.arange(len(left))
    table = np.tile(np.arange(LEVELS, dtype=np.int64), (len(left), 1))
    while True:
        # The emptiest column of a row is filled up by the fullest, and then done with.
        poor, rich = left.argmin(axis=1), left.argmax(axis=1)
        missing = POISSON_TABLE_COLUMN - left[rows, poor]
        if not missing.any():
            return table.astype(np.uint32).ravel()
        short = missing > 0
        at = rows[short], poor[short]
        table[at] = left[at] << 8 | rich[short]
        left[at] = POISSON_TABLE_COLUMN
        left[rows, rich] -= missing
