"""The end of a block, compiled. Importing this file imports numba: only inside functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from shiftcal.monitoring._columns import UNIT
from shiftcal.numerics._jit import compiled

PLAIN = {"error_model": "numpy"}


@compiled(error_model="numpy")
def end_block(ring: Any, features: Any, partial: Any, head: Any, window: Any, means: Any) -> None:
    """Put a block into the ring, and add up the window.

    Args:
        ring: ``(b, c)`` sums of the blocks.
        features: ``(b, 5)`` of them.
        partial: ``(c,)`` sums of the block; zero afterwards.
        head: Its place.
        window: ``(f,)`` weights of the blocks that are there then, by age, for a mean.
        means: ``(c - 1,)`` gets the means over the window, in all columns but the last.
    """
    for c in range(partial.shape[0]):
        ring[head, c] = partial[c]
        partial[c] = 0
    row_of(ring[head], features[head])
    means[:] = 0.0
    for age in range(window.shape[0]):
        place = (head - age) % ring.shape[0]
        for c in range(means.shape[0]):
            means[c] += window[age] * ring[place, c]


@compiled(error_model="numpy")
def largest_ratio(features: Any, head: Any, filled: Any, scales: Any) -> float:
    """The largest ratio of a statistic to its limit, over the scales that are there.

    Args:
        features: ``(b, 5)`` sums of the blocks, a ring.
        head: Place of the newest.
        filled: Blocks in the ring.
        scales: ``(s, b)`` weights by age, which make a mean in standard deviations; ``(s,)`` blocks
            that each scale needs; ``(s, 5)`` the reference in the same unit; ``(5, d)`` directions;
            ``(s, 2)`` squared limits.
    """
    weights, needed, offset, directions, squares = scales
    largest = 0.0
    moved = np.empty(features.shape[1])
    for s in range(weights.shape[0]):
        if filled >= needed[s]:
            for i in range(moved.shape[0]):
                moved[i] = -offset[s, i]
            for age in range(needed[s]):
                place = (head - age) % features.shape[0]
                for i in range(moved.shape[0]):
                    moved[i] += weights[s, age] * features[place, i]
            largest = max(largest, _square(moved, directions, squares[s]))
    return math.sqrt(largest)


@njit(**PLAIN)
def row_of(sums: Any, out: Any) -> None:
    """Sums of the features over the rows of a block, in the order of ``FEATURES``."""
    k = (sums.shape[0] - 4) // 2
    concentration = np.int64(0)
    for c in range(2 + k, 2 + 2 * k):
        concentration += sums[c]
    out[0] = UNIT * sums[0]
    out[1] = UNIT * sums[2 * k + 2]
    out[2] = UNIT * sums[1]
    out[3] = UNIT * concentration
    out[4] = UNIT * sums[2 * k + 3]


@njit(**PLAIN)
def _square(moved: Any, directions: Any, squares: Any) -> Any:
    """The larger of both squared ratios."""
    directed = 0.0
    undirected = 0.0
    for j in range(directions.shape[1]):
        along = 0.0
        for i in range(moved.shape[0]):
            along += moved[i] * directions[i, j]
        if j == 0:
            directed = along * abs(along)
        else:
            undirected += along * along
    return max(directed / squares[0], undirected / squares[1])
