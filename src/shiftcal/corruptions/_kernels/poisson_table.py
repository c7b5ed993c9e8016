"""The grey levels that Poisson counts lead to, as tables read with one random number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEVELS = 256
COLUMN = 1 << 24  # numbers of 32 bits that have the same first eight


def level_masses(rate: float) -> NDArray[np.int64]:
    """The distribution of ``floor(255 min(Poisson(rate x) / rate, 1))`` for every grey level.

    Returns:
        ``(256, 256)``, from the row's level to the column's, in units of 2**-32: rows sum to
        2**32, and no sum of neighbours is off by more than one unit.
    """
    from scipy.special import pdtr

    counts = np.arange(int(rate + 12 * np.sqrt(rate) + 24))
    reached = (np.clip(counts / rate, 0, 1) * 255).astype(np.uint8)
    last = np.searchsorted(reached, np.arange(LEVELS), side="right") - 1
    rates = rate * (np.arange(LEVELS) / 255)
    ends = np.rint(pdtr(last, rates[:, None]) * 2.0**32).astype(np.int64)
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
        missing = COLUMN - left[rows, poor]
        if not missing.any():
            return table.astype(np.uint32).ravel()
        short = missing > 0
        at = rows[short], poor[short]
        table[at] = left[at] << 8 | rich[short]
        left[at] = COLUMN
        left[rows, rich] -= missing
