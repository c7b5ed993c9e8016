"""How far the share of rows that are right may be from the probability of being right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def exact_intervals(
    hits: NDArray[Any], n: NDArray[Any], *, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both ends of Clopper and Pearson's intervals of ``hits / n``.

    They hold the probability at least as often as ``level`` says, for every n. Rows that differ in
    their probabilities vary less than rows that do not, so that it is kept for their mean too.

    Args:
        hits: ``(m,)``, from 0 to n. Need not be whole: rows of equal confidence are shared among
            bins.
        n: ``(m,)`` rows, more than 0.
        level: Strictly between 0 and 1.
    """
    from scipy.special import betaincinv

    total = np.asarray(n, np.float64)
    k = np.clip(np.asarray(hits, np.float64), 0.0, total)
    tail = (1 - level) / 2
    # The quantiles at the ends of their range are written out: a beta of shape 0 has none.
    low = np.where(k > 0, betaincinv(np.maximum(k, 1e-12), total - k + 1, tail), 0.0)
    high = np.where(k < total, betaincinv(k + 1, np.maximum(total - k, 1e-12), 1 - tail), 1.0)
    return np.minimum(low, k / total), np.maximum(high, k / total)
