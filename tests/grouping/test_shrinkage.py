"""Variances within and between groups, against published figures and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftcal.grouping import Spread, between_variance, spread_of

# Tuberculosis with and without vaccination in 13 trials (Colditz et al. 1994): ill and not ill
# among the vaccinated, then among the others.
TRIALS = np.array(
    [
        [4, 119, 11, 128],
        [6, 300, 29, 274],
        [3, 228, 11, 209],
        [62, 13536, 248, 12619],
        [33, 5036, 47, 5761],
        [180, 1361, 372, 1079],
        [8, 2537, 10, 619],
        [505, 87886, 499, 87892],
        [29, 7470, 45, 7232],
        [17, 1699, 65, 1600],
        [186, 50448, 141, 27197],
        [5, 2493, 3, 2338],
        [27, 16886, 29, 17825],
    ],
    dtype=float,
)


def log_risk_ratios():
    a, b, c, d = TRIALS.T
    values = np.log(a / (a + b)) - np.log(c / (c + d))
    return values, 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)


def test_the_variance_between_trials_is_the_published_one():
    # 0.3180 to four digits: published for these trials by others' code as the root of the equation
    assert between_variance(*log_risk_ratios()) == pytest.approx(0.3180, abs=2e-4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(1e-8, 1)), min_size=2, max_size=30),
)
def test_it_never_fails_and_stays_within_its_bounds(pairs):
    values, variances = np.array(pairs).T
    found = between_variance(values, variances)
    assert 0 <= found <= values.var(ddof=1) + 1e-12


def test_the_variance_within_is_that_of_an_analysis_of_variance():
    from scipy import stats

    rng = np.random.default_rng(4)
    parts = [rng.normal(mean, 1, 7) for mean in (0.0, 0.4, 1.5)]
    codes = np.repeat(np.arange(3), 7)
    found = spread_of(np.concatenate(parts), codes, np.full(3, 7))
    # In a balanced layout the estimate is that of the analysis of variance: F = 1 + n τ² / s².
    f = stats.f_oneway(*parts).statistic
    assert 1 + 7 * found.between / found.within == pytest.approx(f, rel=1e-9)


def test_weights_grow_with_rows_and_reach_their_ends():
    weights = Spread(0.04, 0.01).weights(np.array([1, 4, 40, 10**12]))
    np.testing.assert_allclose(weights, [0.2, 0.5, 40 / 44, 1.0], rtol=1e-9)
    assert Spread(0.04, 0.0).weights(np.array([5])).tolist() == [0]
    assert Spread(None, 0.0).weights(np.array([1])).tolist() == [0]
    assert Spread(0.0, 0.01).weights(np.array([1])).tolist() == [1]
