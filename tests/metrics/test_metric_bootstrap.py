"""Bootstrap intervals: what they cover, counted."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.metrics import (
    accuracy,
    bootstrap,
    brier,
    cautious_interval,
    debiased_ece,
    ece,
    facts_of,
    ks_error,
    nll,
    reflected_interval,
    smooth_ece,
    top1_brier,
)


def overconfident(n, rng, offset=0.1):
    """Confidence is ``offset`` too high everywhere, so that the true ECE is known."""
    c = rng.uniform(0.5, 1.0, n)
    return c, rng.random(n) < c - offset


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 300)
    labels = (probs.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    return probs, labels


def test_the_value_is_the_metric_and_lies_inside():
    c, r = overconfident(400, np.random.default_rng(1))
    interval = bootstrap(ece, c, r, n_resamples=100, n_bins=10, binning="width")
    assert interval.value == ece(c, r, n_bins=10, binning="width")
    assert interval.low < interval.value < interval.high
    assert interval.level == 0.95


@pytest.mark.parametrize("metric", [nll, brier, accuracy])
def test_means_over_rows_are_resampled_like_any_metric(rows, metric):
    # The short way through the losses of rows must be the long way through the rows.
    quick = bootstrap(metric, *rows, n_resamples=50, seed=1)
    rng = np.random.default_rng(1)
    probs, labels = rows
    values = []
    for _ in range(50):
        drawn = rng.integers(0, 300, size=300)
        values.append(metric(probs[drawn], labels[drawn]))
    facts = facts_of(metric)
    low, high = reflected_interval(
        metric(*rows), np.array(values), level=0.95, lower=facts.lower, upper=facts.upper
    )
    assert (quick.low, quick.high) == pytest.approx((low, high), rel=1e-12)


def test_the_interval_of_the_accuracy_is_the_normal_one():
    rng = np.random.default_rng(2)
    labels = (rng.random(5000) < 0.2).astype(int)
    probs = np.tile([0.9, 0.1], (5000, 1))
    interval = bootstrap(accuracy, probs, labels)
    p = interval.value
    half = 1.96 * np.sqrt(p * (1 - p) / 5000)
    # 1,000 draws give a quantile to about 5 % of the half width.
    assert interval.high - p == pytest.approx(half, rel=0.12)
    assert p - interval.low == pytest.approx(half, rel=0.12)


def test_it_covers_the_truth_as_often_as_it_says_for_an_unbiased_metric():
    rng = np.random.default_rng(3)
    # E (c - r)^2 = E c (1 - c) for calibrated c, uniform on [1/2, 1].
    truth = 0.75 - (1 / 48 + 9 / 16)
    covered = 0
    for seed in range(200):
        c = rng.uniform(0.5, 1.0, 300)
        r = rng.random(300) < c
        interval = bootstrap(top1_brier, c, r, n_resamples=200, level=0.9, seed=seed)
        covered += interval.low <= truth <= interval.high
    # 180 expected, a standard deviation of 4.2; three of them, and the bootstrap is a little short.
    assert 164 <= covered <= 193


def test_it_covers_the_ece_of_a_miscalibrated_predictor():
    rng = np.random.default_rng(4)
    covered = 0
    for seed in range(60):
        c, r = overconfident(1000, rng)
        interval = bootstrap(ece, c, r, n_resamples=150, level=0.9, seed=seed)
        covered += interval.low <= 0.1 <= interval.high
    # 54 expected, a standard deviation of 2.3; the bootstrap is a little short.
    assert 46 <= covered <= 60


@pytest.mark.parametrize("metric", [ece, smooth_ece, ks_error, debiased_ece])
def test_it_holds_zero_for_a_calibrated_predictor_as_often_as_it_says(metric):
    rng = np.random.default_rng(5)
    reached = 0
    for seed in range(40):
        c, r = overconfident(500, rng, offset=0.0)
        reached += bootstrap(metric, c, r, n_resamples=100, level=0.9, seed=seed).low == 0
    # a value beyond the upper 5 % is one in twenty: 38 expected, a standard deviation of 1.4
    assert reached >= 34


@pytest.mark.parametrize("gap", [0.01, 0.03])
@pytest.mark.parametrize("metric", [debiased_ece, ece, ks_error])
def test_it_covers_errors_that_are_hard_to_tell_from_none(metric, gap):
    rng = np.random.default_rng(8)
    covered = 0
    for seed in range(40):
        c, r = overconfident(500, rng, offset=gap)
        interval = bootstrap(metric, c, r, n_resamples=60, seed=seed)
        covered += interval.low <= gap <= interval.high
    # 38 expected, a standard deviation of 1.4
    assert covered >= 35


def test_the_ends_of_a_calibration_error_by_hand():
    # The quantiles of these draws are 0.31, 0.4 and 0.49: reflected at 0.3 they are 0.11 to 0.29.
    draws = np.linspace(0.3, 0.5, 101)

    def ends(noise, value=0.3):
        calibrated = np.full(100, noise)
        return cautious_interval(value, draws, lambda: calibrated, level=0.9, upper=1.0)

    assert ends(0.0) == pytest.approx((0.11, 0.39))  # no noise: reflected below, 0.3 + 0.09 above
    assert ends(0.195) == pytest.approx((0.105, 0.39))  # 0.3 - 0.195, with 0.21^2 - 0.195^2 less
    assert ends(0.18) == pytest.approx((0.11, 0.39))  # 0.3 - 0.18 is more than the reflected
    assert ends(0.3) == pytest.approx((0.0, 0.39))  # a calibrated model shows as much
    skewed = np.concatenate([np.zeros(50), np.ones(51)])
    low, high = cautious_interval(0.9, skewed, lambda: draws, level=0.9, upper=1.0)
    assert (low, high) == pytest.approx((0.8, 1.0))
