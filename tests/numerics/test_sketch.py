"""Cells, exact sums and ways through intervals, against their definitions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from shiftcal.numerics.binning import equal_size_cuts, sums_between, tie_groups
from shiftcal.numerics.sketch import (
    EXACT_BITS,
    cell_of,
    exact_sum,
    fixed_square_sum,
    fixed_sum,
    greatest_length,
    least_length,
    n_cells,
)


@pytest.mark.parametrize("precision", [1, 3, 11])
def test_exact_zero_and_one_have_cells_of_their_own(precision):
    c = np.array([0.0, 5e-324, 1e-9, 1 - 2**-53, 1.0])
    last = n_cells(precision) - 1
    assert cell_of(c, precision).tolist() == [0, 1, 1, last - 1, last]


@pytest.mark.parametrize("precision", [1, 3, 11])
def test_cells_are_closed_above_and_follow_without_gaps(precision):
    # Every cell edge in the middle, and those of the octaves at both ends.
    step = 2.0 ** -(precision + 6)
    edges = np.arange(round(1 / 64 / step), round(63 / 64 / step) + 1) * step
    octave = np.arange(2**precision, 2 ** (precision + 1)) * 2.0**-precision
    near = np.concatenate([octave * 2.0**-j for j in range(25, 6, -1)])
    edges = np.concatenate([near, edges, np.sort(1 - near)])
    cell = cell_of(edges, precision)
    np.testing.assert_array_equal(np.diff(np.unique(edges)) > 0, True)
    assert np.unique(np.diff(cell[np.diff(edges, append=2) > 0])).tolist() == [1]
    below = cell_of(np.nextafter(edges, 0), precision)
    above = cell_of(np.nextafter(edges, 1), precision)
    np.testing.assert_array_equal(above, cell + 1)
    inner = edges > 2.0**-25
    np.testing.assert_array_equal(below[inner], cell[inner])
    assert cell.max() + 1 == n_cells(precision) - 2


def test_widths_are_as_documented():
    def width(at):
        near = at + np.arange(-1000, 1001) * 1e-8
        return np.ptp(near[cell_of(near, 11) == cell_of(np.array([at]), 11)])

    assert width(0.6) == pytest.approx(7.6e-6, rel=0.05)
    assert width(0.99) == pytest.approx(3.8e-6, rel=0.05)
    assert width(0.999) == pytest.approx(4.8e-7, rel=0.05)


FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30)
PARTS_OF_ONE = st.lists(st.floats(0, 1), max_size=30)


@given(FLOATS)
def test_an_exact_sum_is_that_of_fractions(values):
    whole = exact_sum(np.array(values, dtype=np.float64))
    assert Fraction(whole, 2**EXACT_BITS) == sum(map(Fraction, values), Fraction(0))


@given(PARTS_OF_ONE)
def test_fixed_sums_are_those_of_rounded_values(values):
    rounded = [round(Fraction(value) * 2**40) for value in values]
    x = np.array(values, dtype=np.float64)
    assert fixed_sum(x, 40) == sum(rounded)
    assert fixed_square_sum(x, 40) == sum(q * q for q in rounded)


def test_a_sum_may_be_too_large_for_64_bits():
    values = np.full(5000, 2.0**52 + 1)
    assert fixed_sum(values, 0) == 5000 * (2**52 + 1)
    assert fixed_square_sum(values, 0) == 5000 * (2**52 + 1) ** 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_are_the_distinct_values_in_order(dtype):
    rng = np.random.default_rng(0)
    c = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], 200).astype(dtype)
    r = rng.random(200) < 0.5
    groups = tie_groups(c, r)
    values, count = np.unique(c, return_counts=True)
    np.testing.assert_array_equal(groups.count, count)
    np.testing.assert_allclose(groups.confidence, values.astype(float) * count)
    np.testing.assert_array_equal(groups.correct, [r[c == value].sum() for value in values])
    assert groups.n == 200


@pytest.mark.parametrize(("n", "n_bins"), [(1, 15), (14, 15), (15, 15), (47, 15), (100, 7)])
def test_cuts_are_those_of_array_split(n, n_bins):
    pieces = np.array_split(np.arange(n), min(n, n_bins))
    assert np.diff(equal_size_cuts(n, n_bins)).tolist() == [len(piece) for piece in pieces]


def test_a_group_across_a_cut_is_spread_evenly():
    sums = sums_between(np.array([1, 4]), np.array([10.0, 8.0]), np.array([0, 3, 5]))
    assert sums.tolist() == [14.0, 4.0]


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
