"""Groups of equal confidence and cuts between ranks."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.numerics.binning import equal_size_cuts, sums_between, tie_groups


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
