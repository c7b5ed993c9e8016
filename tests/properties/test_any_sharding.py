"""Any sharding, in any order, merges to the same: to the last bit, and to what the rows say."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax

from shiftcal.errors import InputWarning
from shiftcal.metrics import ece
from shiftcal.scores import Scores
from shiftcal.scoring.statistics import ScoreStatistics

# Scales from logits that say nothing to logits that leave no doubt, and such as nobody expects.
SCALES = st.sampled_from([1e-3, 0.1, 1.0, 4.0, 30.0, 1e3])
DTYPES = st.sampled_from(["float16", "float32", "float64"])


@st.composite
def sets(draw):
    """Rows, labels and a shard for every row."""
    n, k = draw(st.integers(1, 60)), draw(st.integers(2, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    z = draw(SCALES) * rng.standard_normal((n, k))
    if draw(st.booleans()):
        z = np.round(z)  # ties
    some = rng.random(n) < draw(st.sampled_from([0.0, 0.2]))
    z[some] *= draw(st.sampled_from([0.0, 50.0]))
    z = np.clip(z, -6e4, 6e4)  # what half precision can hold
    y = rng.integers(0, k, n)
    how = draw(st.sampled_from(["mixed", "right", "one class", "by shard"]))
    if how == "right":
        y = z.argmax(axis=1)
    elif how == "one class":
        y[:] = draw(st.integers(0, k - 1))
    shards = rng.integers(0, draw(st.integers(1, n)), n)
    if how == "by shard":
        y = shards % k  # no two shards have a label in common, if there are classes enough
    return z.astype(draw(DTYPES)), y, shards


def statistics(z, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # a row or two may be on the simplex
        return ScoreStatistics.of(Scores(z, labels=y), **options)


def sharded(z, y, shards, random):
    numbers = list(np.unique(shards))
    random.shuffle(numbers)
    return [statistics(z[shards == s], None if y is None else y[shards == s]) for s in numbers]


@given(sets(), st.randoms(use_true_random=False))
def test_any_sharding_gives_the_same_statistics_to_the_last_bit(data, random):
    z, y, shards = data
    whole, parts = statistics(z, y), sharded(z, y, shards, random)
    assert sum(parts) == whole
    assert ScoreStatistics.merged(parts) == whole
    # in pairs, as a tree of workers would
    while len(parts) > 1:
        random.shuffle(parts)
        parts = [sum(parts[i : i + 2]) for i in range(0, len(parts), 2)]
    assert parts[0] == whole
    assert parts[0].temperature_fit() == whole.temperature_fit()


@given(sets(), st.randoms(use_true_random=False))
def test_targets_without_labels_merge_too(data, random):
    z, _, shards = data
    merged = ScoreStatistics.merged(sharded(z, None, shards, random))
    assert merged == statistics(z, None)
    confidence = softmax(z.astype(float), axis=1).max(axis=1)
    assert merged.mean_confidence == pytest.approx(confidence.mean(), abs=1e-12)
    # the root of a variance whose rows are rounded to 2**-41
    assert merged.sd_confidence == pytest.approx(confidence.std(), abs=1e-9)


@given(sets(), st.randoms(use_true_random=False), st.integers(1, 8), st.integers(1, 20))
def test_merged_numbers_are_those_of_the_rows(data, random, precision, n_bins):
    z, y, shards = data
    merged = sum(sharded(z, y, shards, random))
    z = z.astype(float)
    p = softmax(z, axis=1)
    confidence, correct = p.max(axis=1), z.argmax(axis=1) == y
    assert merged.n == len(z)
    assert merged.accuracy() == correct.mean()
    losses = -log_softmax(z, axis=1)[np.arange(len(z)), y]
    assert merged.nll() == pytest.approx(losses.mean(), rel=1e-12, abs=1e-12)
    coarse = statistics(z, y, precision=precision)
    low, high = coarse.ece_range(n_bins=n_bins)
    # rounding of a float64 mean of exact residuals
    assert low - 1e-12 <= ece(confidence, correct, n_bins=n_bins) <= high + 1e-12
    near_an_edge = np.abs(confidence * 15 - np.rint(confidence * 15)) < 1e-12
    assume(not near_an_edge.any())  # rounding alone decides in which bin such a row is
    width = ece(confidence, correct, binning="width")
    assert merged.ece(binning="width") == pytest.approx(width, abs=1e-9)


@given(sets(), st.randoms(use_true_random=False))
def test_the_merged_temperature_is_that_of_scipy(data, random):
    z, y, shards = data
    fit = sum(sharded(z, y, shards, random)).temperature_fit()
    z = z.astype(float)
    z -= z.max(axis=1, keepdims=True)
    at = np.arange(len(z)), y

    def slope(u):
        beta = np.exp(u)
        return beta * ((softmax(beta * z, axis=1) * z).sum(axis=1) - z[at]).mean()

    ends = np.log([0.01, 100.0])
    values = [slope(u) for u in ends]
    assume(min(map(abs, values)) > 1e-9)  # at an end itself rounding decides
    if values[0] > 0 or values[1] < 0:
        assert fit.status.code == ("at-upper-bound" if values[0] > 0 else "at-lower-bound")
        return
    u = brentq(slope, *ends, xtol=1e-15, rtol=1e-15)
    curvature = (slope(u + 1e-4) - slope(u - 1e-4)) / 2e-4
    assume(curvature > 1e-6)  # a valley so flat that rounding moves the minimum
    assert fit.status.converged
    # few rows are the hardest: nothing smooths the likelihood between the steps of the ladder
    assert fit.temperature == pytest.approx(np.exp(-u), rel=1e-6)
