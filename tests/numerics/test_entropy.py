"""Entropy of softmax rows against scipy and against many digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import entropy as scipy_entropy

from shiftcal.numerics.softmax import entropy

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("k", [2, 10, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_scipys(k, dtype):
    logits = (3 * RNG.standard_normal((200, k))).astype(dtype)
    expected = scipy_entropy(softmax(logits.astype(np.float64), axis=1), axis=1)
    # where a row is sure, the probabilities themselves are rounded to 1e-16
    np.testing.assert_allclose(entropy(logits), expected, rtol=1e-12, atol=1e-15)


def by_many_digits(row):
    with localcontext() as context:
        context.prec = 60
        e = [Decimal(float(v)).exp() for v in row]
        total = sum(e)
        return float(-sum(v / total * (v / total).ln() for v in e))


@pytest.mark.parametrize("row", [[40.0, 0.0, 1.0], [0.0, 15.0, 15.0], [-3.0, 60.5, 0.25]])
def test_sure_rows_keep_their_digits(row):
    assert entropy(np.array([row]))[0] == pytest.approx(by_many_digits(row), rel=1e-13)


def test_equal_logits_have_the_greatest_entropy_and_huge_differences_none():
    np.testing.assert_allclose(entropy(np.full((2, 7), 3.0)), np.log(7), rtol=1e-14)
    np.testing.assert_array_equal(entropy(np.array([[-1e4, 0.0, 1e4]])), [0.0])


def test_many_blocks_of_rows_are_all_filled():
    logits = RNG.standard_normal((30_000, 5))  # more than one block of 65,536 numbers
    np.testing.assert_array_equal(entropy(logits)[-7:], entropy(logits[-7:]))
