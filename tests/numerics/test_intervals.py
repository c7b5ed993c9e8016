"""Student's interval against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shiftcal.numerics.samples import MeanInterval, mean_interval


@pytest.mark.parametrize("n", [2, 3, 5, 40])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_it_is_scipys(n, level):
    values = np.random.default_rng(n).normal(4.4, 0.3, n)
    low, high = stats.t.interval(level, n - 1, loc=values.mean(), scale=stats.sem(values))
    # Both are a few roundings from the exact value.
    np.testing.assert_allclose(
        mean_interval(values, level=level), (values.mean(), low, high), rtol=1e-12
    )


def test_five_numbers_worked_by_hand():
    # s = sqrt(2.5), the 97.5 % quantile of 4 degrees of freedom is 2.776445 in printed tables
    mean, low, high = mean_interval([1, 2, 3, 4, 5])
    assert mean == 3
    assert high - mean == pytest.approx(2.776445 * np.sqrt(2.5 / 5), abs=1e-6)
    assert mean - low == pytest.approx(high - mean, rel=1e-12)


def test_it_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(7)
    held = [
        low <= 2.0 <= high
        for _, low, high in (mean_interval(rng.normal(2, 1, 5), level=0.9) for _ in range(2000))
    ]
    # The share of 2,000 has a standard deviation of 0.0067; four of them.
    assert np.mean(held) == pytest.approx(0.9, abs=0.027)


def test_one_value_has_no_interval():
    assert mean_interval([4.5]) == MeanInterval(4.5, None, None)


@given(st.floats(-1e6, 1e6), st.integers(2, 9))
def test_equal_values_have_an_interval_of_no_width(value, n):
    assert mean_interval([value] * n) == (value, value, value)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8), st.randoms())
def test_the_order_does_not_matter(values, random):
    shuffled = random.sample(values, len(values))
    assert mean_interval(shuffled) == mean_interval(values)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf"), 1.0]])
def test_no_values_and_values_that_are_no_numbers_are_refused(values):
    with pytest.raises(ValueError, match="at least one, all finite"):
        mean_interval(values)


@pytest.mark.parametrize("level", [0, 1, 95, float("nan")])
def test_a_level_out_of_range_is_refused(level):
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        mean_interval([1, 2], level=level)
