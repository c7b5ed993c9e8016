"""Exact intervals of shares, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shiftcal.numerics.samples import exact_intervals


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_they_are_scipys(level):
    hits, n = np.array([0, 1, 7, 19, 20, 500_000]), np.array([5, 1, 30, 20, 20, 1_000_000])
    low, high = exact_intervals(hits, n, level=level)
    for j in range(len(n)):
        theirs = stats.binomtest(int(hits[j]), int(n[j])).proportion_ci(level, method="exact")
        assert (low[j], high[j]) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_they_hold_the_share_where_hits_are_not_whole():
    hits = np.linspace(0, 3, 31)
    low, high = exact_intervals(hits, np.full(31, 3), level=0.01)
    assert (low <= hits / 3).all()
    assert (high >= hits / 3).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()


def test_hits_that_rounding_put_outside_are_taken_as_none_or_all():
    low, high = exact_intervals(np.array([-1e-12, 4 + 1e-12]), np.array([4, 4]), level=0.9)
    assert low[0] == 0
    assert high[1] == 1
    assert np.isfinite([*low, *high]).all()
