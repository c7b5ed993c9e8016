"""The shortest and the longest way through intervals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from shiftcal.numerics.sketch import greatest_length, least_length


def draw(seed):
    rng = np.random.default_rng(seed)
    middle = rng.standard_normal(8).cumsum()
    half = rng.exponential(0.5, 8) * (rng.random(8) < 0.7)
    middle[0] = half[0] = 0.0
    return middle - half, middle + half


@pytest.mark.parametrize("seed", range(10))
def test_the_longest_way_is_the_longest_of_all_corners(seed):
    low, high = draw(seed)
    ways = itertools.product(*zip(low, high, strict=True))
    longest = max(np.abs(np.diff(way)).sum() for way in ways)
    assert greatest_length(low, high) == pytest.approx(longest, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_shortest_way_is_the_one_of_linear_programming(seed):
    low, high = draw(seed)
    n = len(low)
    # Minimise the sum of s with |x[i+1] - x[i]| <= s[i] and x inside its interval.
    step = np.diff(np.eye(n), axis=0)
    bound = -np.eye(n - 1)
    found = linprog(
        np.concatenate([np.zeros(n), np.ones(n - 1)]),
        A_ub=np.block([[step, bound], [-step, bound]]),
        b_ub=np.zeros(2 * (n - 1)),
        bounds=[*zip(low, high, strict=True), *[(0, None)] * (n - 1)],
    )
    assert least_length(low, high) == pytest.approx(found.fun, abs=1e-9)


def test_points_leave_no_choice():
    points = np.array([0.0, 2.0, -1.0, 3.0])
    assert least_length(points, points) == greatest_length(points, points) == 9.0
