"""Intervals of shares of rows, and of the gap between confidence and accuracy."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from shiftcal.report.html.parts import Ranged


def share(hits: float, n: float, *, level: float) -> Ranged:
    """``hits / n`` with the exact interval of Clopper and Pearson.

    Args:
        hits: Need not be whole: rows of equal confidence are shared among bins.
        n: Rows, more than 0.
        level: Coverage, kept for every share and every n.
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    value = min(max(hits / n, 0.0), 1.0)
    hits = min(max(hits, 0.0), n)
    low = 0.0 if hits <= 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits >= n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return Ranged(value, min(low, value), max(high, value))


def gap(confidence: NDArray[np.float64], correct: NDArray[np.bool_], *, level: float) -> Ranged:
    """Mean of ``confidence - correct`` with its normal interval; none for a single row."""
    differences = confidence - correct
    value, n = float(differences.mean()), len(differences)
    if n < 2:
        return Ranged(value)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    return Ranged(value, max(value - half, -1.0), min(value + half, 1.0))
