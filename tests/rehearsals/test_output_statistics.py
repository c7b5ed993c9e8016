"""Statistics of outputs against plain numpy and scipy, and what they tell and do not tell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit, softmax
from scipy.stats import entropy

from shiftcal.methods.rehearsals import STATISTICS, grouped_moments, output_statistics, row_moments

CONFIDENCE, ENTROPY, SPREAD, SHARPNESS = range(4)


def logits_of(n, k, *, seed, scale=3.0):
    return scale * np.random.default_rng(seed).standard_normal((n, k))


def by_hand(logits):
    """The four statistics of all rows, from their definition."""
    p = softmax(np.asarray(logits, dtype=np.float64), axis=1)
    k = p.shape[1]
    mean = p.mean(axis=0)
    return np.array(
        [
            logit(p.max(axis=1).mean()),
            entropy(p, axis=1).mean() / np.log(k),
            entropy(mean) / np.log(k),
            np.mean((p**2).mean(axis=0) / mean),
        ]
    )


def statistics_of(logits):
    return output_statistics(row_moments(logits).mean(axis=0))


def one_hot(labels, k):
    return np.where(np.eye(k)[labels] > 0, 2000.0, 0.0)


@pytest.mark.parametrize(("n", "k"), [(7, 3), (40, 2), (25, 60)])
def test_they_are_what_their_formulas_say(n, k):
    logits = logits_of(n, k, seed=n)
    assert len(STATISTICS) == 4
    np.testing.assert_allclose(statistics_of(logits), by_hand(logits), rtol=1e-12)
    grouped = grouped_moments(logits, np.random.default_rng(0))
    np.testing.assert_allclose(grouped.statistics(), by_hand(logits), rtol=1e-12)
    assert grouped.n == n


@pytest.mark.parametrize("prior", [np.full(5, 0.2), [0.9, 0.04, 0.03, 0.02, 0.01]])
def test_a_model_that_is_sure_is_sharp_whatever_the_class_prior(prior):
    labels = np.r_[np.arange(5), np.random.default_rng(1).choice(5, 400, p=prior)]
    found = statistics_of(one_hot(labels, 5))
    assert found[SHARPNESS] == pytest.approx(1.0, abs=1e-12)
    assert found[ENTROPY] == 0.0
    np.testing.assert_allclose(found[SPREAD], entropy(np.bincount(labels), base=5), rtol=1e-12)


def clear_logits(prior, *, signal, n=6000):
    labels = np.random.default_rng(3).choice(10, n, p=prior)
    return logits_of(n, 10, seed=4, scale=1.0) + signal * np.eye(10)[labels]


EVEN = np.full(10, 0.1)
UNEVEN = np.array([0.5, 0.3, *[0.025] * 8])


def test_another_prior_lowers_the_entropy_of_the_mean_and_hardly_the_sharpness():
    every, uneven = (statistics_of(clear_logits(p, signal=9.0)) for p in (EVEN, UNEVEN))
    assert every[SPREAD] - uneven[SPREAD] > 0.3
    assert abs(uneven[SHARPNESS] - every[SHARPNESS]) < 0.03


def test_outputs_beyond_all_rounding_stay_finite():
    for logits in (one_hot(np.zeros(5, dtype=int), 3), 1e4 * logits_of(30, 6, seed=2)):
        assert np.isfinite(statistics_of(logits)).all()


def test_rows_in_blocks_give_the_sums_of_all_in_one_go():
    logits = logits_of(30_000, 10, seed=5)  # five blocks
    grouped = grouped_moments(logits, np.random.default_rng(9))
    assert grouped.sums.shape == (300, 22)  # of a hundred rows each
    group = np.random.default_rng(9).permutation(30_000) % 300
    moments = row_moments(logits)
    for g in (0, 17, 299):
        np.testing.assert_allclose(grouped.sums[g], moments[group == g].sum(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(grouped.counts, np.bincount(group))
    assert grouped.counts.max() - grouped.counts.min() <= 1


def test_at_a_size_of_all_rows_or_more_they_are_those_of_all_rows():
    grouped = grouped_moments(logits_of(900, 6, seed=5), np.random.default_rng(0))
    for size in (900, 901.5, 1e9):
        found = grouped.at_size(size, np.random.default_rng(1))
        np.testing.assert_array_equal(found, grouped.statistics())


def many_classes(n, rng, *, k=200):
    z = rng.standard_normal((n, k), dtype=np.float32)
    z[np.arange(n), rng.integers(0, k, n)] += 2.0
    return 4.0 * z


def test_at_a_size_the_entropy_of_the_mean_is_that_of_real_samples_of_that_size():
    rng = np.random.default_rng(6)
    grouped = grouped_moments(many_classes(5000, rng), rng)
    found, all_rows = grouped.at_size(200, rng), grouped.statistics()
    real = np.mean([statistics_of(many_classes(200, rng)) for _ in range(30)], axis=0)
    assert abs(found[SPREAD] - real[SPREAD]) < 0.2 * abs(all_rows[SPREAD] - real[SPREAD])
    # means of rows, which have no such bias: three standard errors of 200 rows among 64 parts
    assert found[ENTROPY] == pytest.approx(all_rows[ENTROPY], rel=0.02)


@pytest.mark.slow
def test_of_a_large_target_small_parts_look_as_real_samples_of_their_size():
    rng = np.random.default_rng(6)
    grouped = grouped_moments(many_classes(200_000, rng), rng)
    all_rows = grouped.statistics()
    for size in (100, 400):
        found = grouped.at_size(size, rng)
        real = np.mean([statistics_of(many_classes(size, rng)) for _ in range(20)], axis=0)
        for one in (SPREAD, SHARPNESS):  # both depend on the rows, and by far more than this
            assert abs(found[one] - real[one]) < 0.1 * abs(all_rows[one] - real[one])


def test_samples_drawn_anew_vary_as_those_of_rows_do():
    logits = logits_of(3000, 5, seed=5)
    grouped = grouped_moments(logits, np.random.default_rng(0))
    by_groups = grouped.redrawn(400, np.random.default_rng(1)).std(axis=0)
    rng, moments = np.random.default_rng(2), row_moments(logits)
    drawn = [moments[rng.integers(0, 3000, 3000)].mean(axis=0) for _ in range(400)]
    by_rows = output_statistics(np.array(drawn)).std(axis=0)
    # deviations of 400 draws are known to 3.5 %, that of 256 groups for the truth to 4.4 %
    np.testing.assert_allclose(by_groups, by_rows, rtol=0.2)
