"""A threshold on a score below which as many rows lie as are wrong (Garg et al. 2022)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def atc_threshold(scores: NDArray[np.float64], n_wrong: int) -> float:
    """The score with ``n_wrong`` rows strictly below it; fewer where scores tie there.

    The share of these scores at or above it is then the accuracy of these rows, exactly if no two
    scores are equal. With none wrong it is ``-inf``, with all wrong ``inf``.

    Args:
        scores: ``(n,)``, larger where a row is more likely right.
        n_wrong: Rows predicted wrongly, ``0 <= n_wrong <= n``.
    """
    if n_wrong == 0:
        return -np.inf
    if n_wrong == len(scores):
        return np.inf
    return float(np.partition(scores, n_wrong)[n_wrong])


def share_at_or_above(scores: NDArray[np.float64], threshold: float) -> float:
    """Share of ``(n,)`` scores that are no smaller than a threshold."""
    return float(np.count_nonzero(scores >= threshold)) / len(scores)
