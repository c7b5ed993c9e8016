"""Distances, intervals, densities and thresholds of samples, against scipy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.integrate import trapezoid

from shiftcal.numerics.samples import (
    atc_threshold,
    exact_intervals,
    folded_density,
    gathered,
    ks_distance,
    mean_interval,
    scott_width,
    share_at_or_above,
    wasserstein_distance,
)

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


@pytest.mark.parametrize("n", [2, 3, 5, 40])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_it_is_scipys(n, level):
    values = np.random.default_rng(n).normal(4.4, 0.3, n)
    low, high = stats.t.interval(level, n - 1, loc=values.mean(), scale=stats.sem(values))
    # Both are a few roundings from the exact value.
    np.testing.assert_allclose(
        mean_interval(values, level=level), (values.mean(), low, high), rtol=1e-12
    )


def test_it_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(7)
    held = [
        low <= 2.0 <= high
        for _, low, high in (mean_interval(rng.normal(2, 1, 5), level=0.9) for _ in range(2000))
    ]
    # The share of 2,000 has a standard deviation of 0.0067; four of them.
    assert np.mean(held) == pytest.approx(0.9, abs=0.027)


def drawn(n, seed=3):
    return 0.25 + 0.75 * np.random.default_rng(seed).beta(4.0, 0.8, n)


def test_it_is_scipys_estimate_of_the_data_with_both_mirror_images():
    values, points = drawn(500), np.linspace(0.25, 1, 300)
    width = scott_width(values, least=0.001)
    assert width == pytest.approx(
        values.std(ddof=1) * stats.gaussian_kde(values).scotts_factor(), rel=1e-12
    )
    mirrored = np.concatenate([values, 0.5 - values, 2 - values])
    theirs = stats.gaussian_kde(mirrored, bw_method=width / mirrored.std(ddof=1))
    ours = folded_density(values, points, width=width, low=0.25, high=1.0)
    assert ours == pytest.approx(3 * theirs(points), rel=1e-9)
    assert trapezoid(ours, points) == pytest.approx(1, abs=1e-3)


def test_counts_are_repetitions():
    values, points = np.array([0.3, 0.6, 0.9]), np.linspace(0, 1, 50)
    counts = np.array([2, 1, 5])
    ends = {"width": 0.05, "low": 0.0, "high": 1.0}
    once = folded_density(np.repeat(values, counts), points, **ends)
    assert folded_density(values, points, counts=counts, **ends) == pytest.approx(once, rel=1e-12)


def test_gathered_values_keep_number_and_mean_and_next_to_all_of_the_density():
    values, points = drawn(30_000), np.linspace(0.25, 1, 200)
    means, counts = gathered(values, cells=2000)
    assert counts.sum() == 30_000
    assert len(means) <= 2000
    assert means @ counts / 30_000 == pytest.approx(values.mean(), rel=1e-12)
    ends = {"width": 0.005, "low": 0.25, "high": 1.0}
    exact = folded_density(values, points, **ends)
    near = folded_density(means, points, counts=counts, **ends)
    # A cell is a fourteenth of a kernel wide: second order in that, 1/14**2/24
    assert np.abs(near - exact).max() < 5e-4 * exact.max()


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


@given(st.sets(st.integers(-1000, 1000), min_size=1, max_size=40), st.data())
def test_exactly_as_many_scores_lie_below_as_are_wrong(distinct, data):
    scores = np.array(data.draw(st.permutations(sorted(distinct)))) / 7
    n_wrong = data.draw(st.integers(0, len(scores)))
    threshold = atc_threshold(scores, n_wrong)
    assert sum(s < threshold for s in scores.tolist()) == n_wrong
    assert share_at_or_above(scores, threshold) == pytest.approx(1 - n_wrong / len(scores))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.data())
def test_where_scores_tie_no_more_lie_below_than_are_wrong(values, data):
    scores = np.array(values, dtype=float)
    n_wrong = data.draw(st.integers(0, len(scores)))
    threshold = atc_threshold(scores, n_wrong)
    below = sum(s < threshold for s in values)
    assert below <= n_wrong
    # right, or the next higher threshold would leave too many below
    assert below == n_wrong or sum(s <= threshold for s in values) > n_wrong


def test_none_or_all_wrong_put_it_beyond_every_score():
    scores = np.array([-0.3, -0.1])  # as negative entropies, for which 0 would be no lower end
    assert atc_threshold(scores, 0) == -np.inf
    assert atc_threshold(scores, 2) == np.inf
    assert share_at_or_above(scores, -np.inf) == 1.0
    assert share_at_or_above(scores, np.inf) == 0.0
