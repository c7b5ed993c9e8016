"""Distances of confidence samples against scipy, and what must hold between them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shiftcal.numerics.samples import ks_distance, wasserstein_distance

# Coarse values, so that ties within and between the samples are common.
SAMPLE = arrays(np.float64, st.integers(1, 40), elements=st.integers(0, 16).map(lambda i: i / 16))


@given(SAMPLE, SAMPLE)
def test_ks_equals_scipy(a, b):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of its p-value, which is not asked for
        expected = scipy.stats.ks_2samp(a, b).statistic
    assert ks_distance(np.sort(a), np.sort(b)) == pytest.approx(expected, abs=1e-12)


@given(SAMPLE, SAMPLE)
def test_wasserstein_equals_scipy(a, b):
    expected = scipy.stats.wasserstein_distance(a, b)
    assert wasserstein_distance(np.sort(a), np.sort(b)) == pytest.approx(expected, abs=1e-12)


@given(SAMPLE, SAMPLE)
def test_wasserstein_is_no_less_than_the_distance_of_means(a, b):
    a, b = np.sort(a), np.sort(b)
    assert wasserstein_distance(a, b) >= abs(a.mean() - b.mean()) - 1e-12


@given(SAMPLE, SAMPLE)
def test_all_are_symmetric_and_ks_stays_within_one(a, b):
    a, b = np.sort(a), np.sort(b)
    for distance in (ks_distance, wasserstein_distance):
        assert distance(a, b) == pytest.approx(distance(b, a), abs=1e-15)
        assert distance(a, a) == 0.0
    assert 0.0 <= ks_distance(a, b) <= 1.0


def test_a_shifted_copy_is_as_far_in_wasserstein_as_in_mean():
    a = np.sort(np.random.default_rng(1).random(500) / 2)
    assert wasserstein_distance(a, a + 0.25) == pytest.approx(0.25, rel=1e-12)
