"""Softmax and entropy against scipy, where it is easy and where it is not."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.special
from scipy.stats import entropy as scipy_entropy

from shiftcal.numerics.softmax import (
    entropy,
    log_softmax,
    p_max,
    softmax,
    sum_of_rows,
    top_of_rows,
)

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("shape", [(1, 2), (7, 3), (3000, 50), (5, 70_000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_three_equal_scipy(shape, dtype):
    z = (5 * RNG.standard_normal(shape)).astype(dtype)
    wide = z.astype(np.float64)
    np.testing.assert_allclose(softmax(z), scipy.special.softmax(wide, axis=1), rtol=1e-12)
    np.testing.assert_allclose(log_softmax(z), scipy.special.log_softmax(wide, axis=1), rtol=1e-12)
    expected = scipy.special.softmax(wide / 2.5, axis=1).max(axis=1)
    np.testing.assert_allclose(p_max(z, 2.5), expected, rtol=1e-12)
    np.testing.assert_allclose(softmax(z, 2.5).max(axis=1), expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e4, 1e300])
def test_extreme_logits_neither_overflow_nor_lose_a_row(scale):
    z = scale * RNG.standard_normal((20, 6))
    probs = softmax(z)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-14)
    assert np.isfinite(p_max(z)).all()


@pytest.mark.parametrize("temperature", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("scale", [1e-10, 1e-16, 1e-18, 5e-324])
def test_the_first_largest_logit_has_the_first_largest_probability(scale, temperature):
    z = scale * RNG.integers(-3, 4, size=(200, 5))
    probs = softmax(z, temperature)
    np.testing.assert_array_equal(probs.argmax(axis=1), z.argmax(axis=1))
    np.testing.assert_allclose(probs, 0.2, rtol=1e-7)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("k", [2, 10, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_scipys(k, dtype):
    logits = (3 * RNG.standard_normal((200, k))).astype(dtype)
    expected = scipy_entropy(scipy.special.softmax(logits.astype(np.float64), axis=1), axis=1)
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


@pytest.mark.parametrize("k", [2, 5, 8, 13, 128, 129, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_and_tops_are_those_of_numpy_to_the_bit(k, dtype):
    rows = np.random.default_rng(k).standard_normal((60, k)).astype(dtype)
    rows[::7, 1] = rows[::7, 0] = 9  # the first of two counts
    top, largest = top_of_rows(rows)
    assert (top == rows.argmax(axis=1)).all()
    assert (largest == rows.max(axis=1)).all()
    assert (top_of_rows(rows[:, ::-1])[0] == rows[:, ::-1].argmax(axis=1)).all()
    wide = rows.astype(np.float64)
    assert (sum_of_rows(wide) == wide.sum(axis=1)).all()
    e = np.exp((wide - wide.max(axis=1, keepdims=True)) / 1.5)
    assert (softmax(rows, 1.5) == e / e.sum(axis=1, keepdims=True)).all()
