"""Monotone regression against scikit-learn's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from shiftcal.numerics.monotone import non_decreasing

PAIRS = st.lists(
    st.tuples(st.floats(-1e3, 1e3, allow_nan=False), st.floats(0.1, 1e3)), min_size=1, max_size=30
)


@given(PAIRS)
def test_it_is_that_of_scikit_learn(pairs):
    values, weights = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    expected = isotonic_regression(values, sample_weight=weights)
    # both add up in float64, in another order
    np.testing.assert_allclose(non_decreasing(values, weights), expected, rtol=1e-9, atol=1e-9)


def test_by_hand():
    found = non_decreasing(np.array([1.0, 3.0, 2.0, 5.0]), np.array([1.0, 1.0, 3.0, 1.0]))
    np.testing.assert_array_equal(found, [1.0, 2.25, 2.25, 5.0])
