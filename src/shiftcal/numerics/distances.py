"""Distances between two samples of confidence, each sorted in rising order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Sample = NDArray[np.float64]


def ks_distance(a: Sample, b: Sample) -> float:
    """``max |F_a - F_b|`` of the two empirical distribution functions, in [0, 1]."""
    points = np.concatenate([a, b])
    below_a = np.searchsorted(a, points, side="right") / len(a)
    below_b = np.searchsorted(b, points, side="right") / len(b)
    return float(np.abs(below_a - below_b).max())


def wasserstein_distance(a: Sample, b: Sample) -> float:
    """``∫ |F_a(t) - F_b(t)| dt``; never less than the distance of the means."""
    points = np.sort(np.concatenate([a, b]), kind="stable")
    below_a = np.searchsorted(a, points[:-1], side="right") / len(a)
    below_b = np.searchsorted(b, points[:-1], side="right") / len(b)
    return float(np.sum(np.abs(below_a - below_b) * np.diff(points)))
