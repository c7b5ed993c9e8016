"""Softmax against scipy, where it is easy and where it is not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from shiftcal.numerics.softmax import keep_top, log_softmax, p_max, softmax

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


def test_only_a_class_that_lost_its_place_is_raised_and_by_one_step():
    probs = np.array([[0.25, 0.5, 0.25], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    kept = probs.copy()
    keep_top(kept, np.array([1, 0, 1]))
    np.testing.assert_array_equal(kept[:2], probs[:2])
    np.testing.assert_array_equal(kept[2], [0.5, np.nextafter(0.5, 1), 0.0])


def test_the_input_is_left_alone():
    z = RNG.standard_normal((10, 4))
    before = z.copy()
    softmax(z, 3.0), log_softmax(z), p_max(z, 3.0)
    np.testing.assert_array_equal(z, before)
