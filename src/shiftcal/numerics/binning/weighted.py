"""Bins of about equal weight that never part equal values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Weights

Array = NDArray[np.float64]


class Distinct(NamedTuple):
    """The distinct values in ascending order, each with the sums over its rows.

    Attributes:
        value: ``(g,)`` ascending.
        weight: ``(g,)`` sum of weights, all positive, together one.
        correct: ``(g,)`` weighted sum of correctness.
    """

    value: Array
    weight: Array
    correct: Array


def distinct(values: Array, correct: Array, weights: Weights) -> Distinct:
    """Rows of equal value gathered.

    Args:
        values: ``(n,)``.
        correct: ``(n,)`` zeros and ones.
        weights: ``(n,)``, positive.
    """
    value, group = np.unique(values, return_inverse=True)
    shares = weights / weights.sum()
    weight: Array = np.bincount(group, shares).astype(np.float64)
    return Distinct(value, weight, np.bincount(group, shares * correct).astype(np.float64))


def equal_weight_bins(groups: Distinct, n_bins: int) -> tuple[Array, Array]:
    """Inner edges and mean correctness of at most ``n_bins`` bins of about equal weight.

    With the weight laid out from 0 to ``n_bins`` in order of value, a value belongs to the bin in
    which the middle of its own weight lies; so equal values stay together, and without ties the
    numbers of rows differ by one at the most. An edge is the middle between the last value of a
    bin and the first of the next. Bins that no value falls into do not exist.
    """
    middle = np.cumsum(groups.weight) - groups.weight / 2
    place = np.floor(middle * n_bins)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(place)) + 1])
    edges = (groups.value[starts[1:] - 1] + groups.value[starts[1:]]) / 2
    totals = np.add.reduceat(groups.weight, starts)
    return edges, np.add.reduceat(groups.correct, starts) / totals
