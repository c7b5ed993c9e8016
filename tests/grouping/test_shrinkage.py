"""Variances within and between groups, against published figures and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftcal.grouping import between_variance, spread_of

# Tuberculosis with and without vaccination in 13 trials (Colditz et al. 1994): ill and not ill
# among the vaccinated, then among the others.
TRIALS = np.array(
    [
        [4, 6, 3, 62, 33, 180, 8, 505, 29, 17, 186, 5, 27],
        [119, 300, 228, 13536, 5036, 1361, 2537, 87886, 7470, 1699, 50448, 2493, 16886],
        [11, 29, 11, 248, 47, 372, 10, 499, 45, 65, 141, 3, 29],
        [128, 274, 209, 12619, 5761, 1079, 619, 87892, 7232, 1600, 27197, 2338, 17825],
    ],
    dtype=float,
)


def log_risk_ratios():
    a, b, c, d = TRIALS
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
    within, between = spread_of(np.concatenate(parts), codes, np.full(3, 7))
    # In a balanced layout the estimate is that of the analysis of variance: F = 1 + n τ² / s².
    f = stats.f_oneway(*parts).statistic
    assert 1 + 7 * between / within == pytest.approx(f, rel=1e-9)
