"""The engine of Rehearsal against numpy, scipy and scikit-learn; methods that adapt to sums."""

from __future__ import annotations

import numpy as np
import pytest
from gaussian_world import CORRUPTIONS, oracle_log_t, outputs, world
from ladder_data import draw
from monitored import bank as monitored_bank
from monitored import method, rows
from scipy.spatial.distance import mahalanobis
from scipy.special import logit, softmax
from scipy.stats import entropy
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import PolynomialFeatures

from shiftcal import SAC, SurrogateBank, estimates
from shiftcal.errors import InputError
from shiftcal.methods import rehearsal
from shiftcal.methods.rehearsal import (
    CALM,
    MOVED,
    Draws,
    Grouped,
    Rehearser,
    _poisson,
    fit_cloud,
    fit_response,
    grouped_moments,
    output_statistics,
    rehearsed_weights,
    remember,
    row_moments,
)
from shiftcal.monitoring.monitor import FixedSize

LABELS = np.repeat([0, 1, 3], [60, 30, 10])  # classes 2 and 4 have no rows


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


@pytest.mark.parametrize(("n", "k"), [(7, 3), (40, 2), (25, 60)])
def test_statistics_are_what_their_formulas_say(n, k):
    logits = logits_of(n, k, seed=n)
    np.testing.assert_allclose(statistics_of(logits), by_hand(logits), rtol=1e-12)
    grouped = grouped_moments(logits, np.random.default_rng(0))
    np.testing.assert_allclose(grouped.statistics(), by_hand(logits), rtol=1e-12)
    assert grouped.n == n


def test_at_a_size_of_all_rows_or_more_statistics_are_those_of_all_rows():
    grouped = grouped_moments(logits_of(900, 6, seed=5), np.random.default_rng(0))
    for size in (900, 901.5, 1e9):
        found = grouped.at_size(size, np.random.default_rng(1))
        np.testing.assert_array_equal(found, grouped.statistics())


def test_samples_drawn_again_vary_as_those_of_rows_do():
    logits = logits_of(3000, 5, seed=5)
    grouped = grouped_moments(logits, np.random.default_rng(0))
    by_groups = grouped.redrawn(400, np.random.default_rng(1)).std(axis=0)
    rng, moments = np.random.default_rng(2), row_moments(logits)
    drawn = [moments[rng.integers(0, 3000, 3000)].mean(axis=0) for _ in range(400)]
    by_rows = output_statistics(np.array(drawn)).std(axis=0)
    # deviations of 400 draws are known to 3.5 %, that of 256 groups for the truth to 4.4 %
    np.testing.assert_allclose(by_groups, by_rows, rtol=0.2)


@pytest.mark.parametrize("most", [1e-18, 0.02, 0.4, 2.0, 9.9, 40.0])
def test_poisson_counts_are_those_of_numpy_and_leave_the_generator_as_it_does(most):
    group = np.random.default_rng(1).integers(0, 4, 700)
    rates = np.array([[most, 0.0, most / 2, most / 7], [most / 3, most, 0.0, most]])[:, group]
    ours, theirs = (np.random.default_rng(2) for _ in "12")
    for rng in (ours, theirs):
        rng.integers(0, 9, dtype=np.uint32)  # half of what it made is kept for the next call
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(_poisson(rates, first, group, ours), theirs.poisson(rates))
    assert ours.bit_generator.state == theirs.bit_generator.state


def weights_of(mixture, n_draws=50, *, labels=LABELS, k=5, seed=0):
    rng = np.random.default_rng(seed)
    return rehearsed_weights(labels, k, mixture, n_draws=n_draws, rng=rng)


@pytest.mark.parametrize("mixture", [CALM, MOVED])
def test_the_weights_of_a_draw_add_up_to_1_and_are_even_in_a_class(mixture):
    weights = weights_of(mixture)
    assert weights.shape == (50, 100)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    for c in (0, 1, 3):
        own = weights[:, c == LABELS]
        np.testing.assert_array_equal(own, np.broadcast_to(own[:, :1], own.shape))


@pytest.mark.parametrize("concentration", [0.3, 1.0, 30.0])
def test_priors_have_the_moments_of_the_dirichlet_distribution(concentration):
    weights = weights_of(((1.0, concentration),), 4000)
    priors = np.stack([weights[:, c == LABELS].sum(axis=1) for c in (0, 1, 3)], axis=1)
    base = np.array([0.6, 0.3, 0.1])
    variance = base * (1 - base) / (concentration * 3 + 1)  # Dirichlet(a K π) over K = 3 classes
    deviation = 4 * np.sqrt(variance / 4000)
    assert (np.abs(priors.mean(axis=0) - base) < deviation).all()
    np.testing.assert_allclose(priors.var(axis=0), variance, rtol=0.15)


def test_a_draw_has_the_truth_of_the_set_under_its_prior():
    z, y = draw(400, 0.8, seed=3)
    rehearser = Rehearser(z, y, np.log(1.5), np.random.default_rng(0))
    found = rehearser.draw(400, 600, np.random.default_rng(2))
    np.testing.assert_array_equal(found.moved, np.arange(600) >= 300)
    same = slice(0, 150)  # the first half begins with draws of the same prior
    np.testing.assert_allclose(found.accuracy[same], (z.argmax(axis=1) == y).mean(), rtol=1e-12)
    np.testing.assert_allclose(found.log_t[same], oracle_log_t(z, y), atol=5e-3)
    entropies = row_moments(z)[:, 1] / np.log(6)
    error = entropies.std() / np.sqrt(400)
    seen = found.statistics[same, 1]
    assert seen.mean() == pytest.approx(entropies.mean(), abs=4 * error / np.sqrt(150))
    assert seen.std() == pytest.approx(error, rel=0.25)
    huge = Rehearser(1e4 * z, np.minimum(y, 3), np.log(1e4), np.random.default_rng(0))
    found = huge.draw(100, 40, np.random.default_rng(0))
    assert all(np.isfinite(part).all() for part in (found.statistics, found.log_t))


M = 300


def rehearsals(m=M, *, seed=5):
    """Four correlated statistics; temperature and accuracy that depend on them and on the prior."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, 4)) @ rng.standard_normal((4, 4)) + [3.0, 0.5, 0.8, 0.7]
    moved = np.arange(m) >= m // 2
    x[moved, 2] -= 1.0
    log_t = 0.1 * x[:, 0] - 0.2 * x[:, 1] ** 2 + np.where(moved, 0.4, 0.0)
    odds = 0.5 * x[:, 0] + 0.1 * x[:, 1] * x[:, 2]
    noise = 0.1 * rng.standard_normal((2, m))
    return Draws(x, log_t + noise[0], 1 / (1 + np.exp(-(odds + noise[1]))), moved)


SEEN = rehearsals()
WEIGHTS = np.random.default_rng(6).choice([1.0, 7.0], M)
CLEAN = fit_cloud(SEEN.statistics[:40], np.ones(40), noise=1.0)
RESPONSE = fit_response(250.0, SEEN, WEIGHTS, CLEAN)
ASKED = SEEN.statistics[::7] + 0.1


def standardised(x, rows):
    """By mean and deviation of some of the rehearsals, with their weights."""
    w = WEIGHTS[rows] / WEIGHTS[rows].sum()
    mean = w @ SEEN.statistics[rows]
    return (x - mean) / np.sqrt(w @ (SEEN.statistics[rows] - mean) ** 2)


def terms(x, rows=slice(None)):
    return PolynomialFeatures(2, include_bias=False).fit_transform(standardised(x, rows))


def ridge(wanted, rows, *, alpha):
    """Of mean squares where scikit-learn's is of sums: the penalty is that times their weight."""
    model = Ridge(alpha=alpha * WEIGHTS[rows].sum())
    model.fit(terms(SEEN.statistics[rows], rows), wanted[rows], sample_weight=WEIGHTS[rows])
    return model.predict(terms(ASKED, rows))


# RESPONSE is for 250 rows.
HALVES = [(False, rehearsal._SAME_RIDGE / 1.4), (True, rehearsal._MOVED_RIDGE)]


@pytest.mark.parametrize(("moved", "alpha"), HALVES)
def test_answers_are_those_of_a_ridge_on_each_half(moved, alpha):
    found, half = RESPONSE.answer(ASKED), SEEN.moved == moved
    wanted = ridge(SEEN.log_t, half, alpha=alpha)
    assert ((wanted > RESPONSE.low) & (wanted < RESPONSE.high)).mean() > 0.8
    log_t = found.log_t_moved if moved else found.log_t
    np.testing.assert_allclose(log_t, np.clip(wanted, RESPONSE.low, RESPONSE.high), atol=1e-9)
    odds = ridge(np.clip(logit(SEEN.accuracy), -6, 6), half, alpha=alpha)
    accuracy = found.accuracy_moved if moved else found.accuracy
    np.testing.assert_allclose(logit(accuracy), np.clip(odds, -6, 6), atol=1e-8)


def test_the_judge_is_logistic_regression_with_its_prior():
    prior = rehearsal._MOVED_PRIOR * 250 / (250 + rehearsal._HALVED_AT)
    of_half = np.where(SEEN.moved, WEIGHTS[SEEN.moved].sum(), WEIGHTS[~SEEN.moved].sum())
    share = np.where(SEEN.moved, prior, 1 - prior) * WEIGHTS / of_half
    # ridge / 2 |w|² + weighted mean loss; scikit-learn has |w|² / 2 + C Σ share loss
    model = LogisticRegression(C=1 / rehearsal._JUDGE_RIDGE, tol=1e-12, max_iter=10_000)
    model.fit(terms(SEEN.statistics), SEEN.moved, sample_weight=share)
    wanted = model.predict_proba(terms(ASKED))[:, 1]
    np.testing.assert_allclose(RESPONSE.answer(ASKED).moved, wanted, atol=1e-5)


def test_distance_is_that_of_mahalanobis():
    x = standardised(SEEN.statistics, slice(None))
    inverse = np.linalg.inv(np.cov(x.T, aweights=WEIGHTS, ddof=0) + 0.01 * np.eye(4))
    wanted = [mahalanobis(row, np.zeros(4), inverse) for row in x]
    np.testing.assert_allclose(RESPONSE.answer(SEEN.statistics).distance, wanted, rtol=1e-9)


def test_statistics_that_differ_by_rounding_only_are_no_trouble():
    x = 0.7 + 1e-16 * np.random.default_rng(0).integers(-3, 4, (40, 4))
    same = Draws(x, np.full(40, 0.3), np.full(40, 0.7), np.arange(40) >= 20)
    found = fit_response(1e9, same, np.ones(40), CLEAN).answer(np.full(4, 0.7 + 1e-15))
    assert found.log_t == pytest.approx(0.3)
    assert found.accuracy == pytest.approx(0.7)
    assert found.distance == pytest.approx(0.0, abs=1e-9)


def remembered(bank, *, seed=0):
    return remember(bank, [oracle_log_t(s.logits, s.labels) for s in bank], seed=seed)


@pytest.fixture(scope="module")
def bank():
    return world(n=500)


@pytest.fixture(scope="module")
def kept(bank):
    return remembered(bank)


def test_a_set_of_the_bank_gets_nearly_its_own_temperature_and_accuracy(bank, kept):
    rng = np.random.default_rng(0)
    for s in bank:
        said = kept.answer(grouped_moments(s.logits, rng), rng)
        # a stiff quadratic goes between sets that have other temperatures at like outputs
        assert said.log_t == pytest.approx(oracle_log_t(s.logits, s.labels), abs=0.3)
        accuracy = (s.logits.argmax(axis=1) == s.labels).mean()
        assert said.accuracy == pytest.approx(accuracy, abs=0.1)


def test_samples_of_the_clean_kind_are_near_the_clean_set_and_others_are_not(kept):
    def from_clean(*given, seed, n=1000):
        rng = np.random.default_rng(0)
        return kept.answer(grouped_moments(outputs(n, *given, seed=seed)[0], rng), rng).from_clean

    near = np.mean([from_clean(seed=s) <= 1 for s in range(300, 340)])
    assert near >= 0.8
    assert all(from_clean(name, 3, seed=400) > 1 for name in CORRUPTIONS)


def test_answers_of_rows_drawn_again_vary_as_those_of_other_samples_do(kept):
    rng = np.random.default_rng(0)
    samples = [grouped_moments(outputs(400, "noise", 3, seed=s)[0], rng) for s in range(100)]
    wanted = np.std([kept.answer(one, rng).log_t for one in samples])
    drawn = [kept.redrawn(one, 200, rng).log_t.std() for one in samples[:10]]
    # the deviation of 100 samples is known to 7 %, and so is each of the ten
    assert np.mean(drawn) == pytest.approx(wanted, rel=0.25)


def test_errors_of_sets_are_those_of_a_memory_without_their_corruption(bank, kept):
    rest = remembered(SurrogateBank([s for s in bank if s.corruption != "haze"]))
    rng = np.random.default_rng(0)
    for j, s in enumerate(bank):
        if s.corruption == "haze":
            said = rest.answer(grouped_moments(s.logits, rng), rng).accuracy
            accuracy = (s.logits.argmax(axis=1) == s.labels).mean()
            # the one is asked once, with all rows; the other is a mean of large draws
            assert kept.accuracy_errors[j] == pytest.approx(said - accuracy, abs=0.03)


def grouped(logits, groups=20):
    moments = row_moments(logits).reshape(groups, -1, 2 + 2 * logits.shape[1])
    counts = np.full(groups, moments.shape[1])
    return Grouped(moments.sum(axis=1), counts, float((moments[..., 0] ** 2).sum()))


@pytest.mark.parametrize("n", [60, 100, 500, 1200, 5000])
@pytest.mark.parametrize("strength", [1.3, 0.7, 0.1])
def test_compiled_answers_are_those_of_the_memory_at_every_size(n, strength):
    memory = method("rehearsal").memory_
    target = grouped(rows(n, strength, seed=n), 20)
    wanted = memory.answer(target, np.random.default_rng(0))
    ready = FixedSize(memory, n, groups=20, seed=0)
    found = ready.answer(target.sums.sum(axis=0) / n, lambda: target)
    np.testing.assert_allclose(found, [float(value) for value in wanted], rtol=1e-9, atol=1e-12)


TARGET = rows(1000, 0.8, seed=5)


@pytest.mark.parametrize("name", ["rehearsal", "sac", "ace", "sts", "ts", "vanilla"])
def test_the_choice_is_that_of_the_rows(name):
    known = method(name)
    wanted = known.adapt(TARGET)
    found = known.adapt_moments(grouped(TARGET))
    assert found.temperature == pytest.approx(wanted.temperature, rel=1e-9)
    assert (found.index, found.n_target) == (wanted.index, wanted.n_target)
    assert [flag.code for flag in found.flags] == [flag.code for flag in wanted.flags]
    assert known.selection_ is found


def test_weights_count_as_often_as_they_say():
    """A block of weight two is as good as twice the block, but for how noisy it is."""
    sums = grouped(TARGET, 2)
    weights = np.array([2.0, 1.0])
    weighed = Grouped(sums.sums * weights[:, None], sums.counts * weights)
    twice = np.concatenate([TARGET[:500], TARGET])
    assert weighed.mean_confidence == pytest.approx(grouped(twice, 3).mean_confidence, rel=1e-12)
    np.testing.assert_allclose(weighed.statistics(), grouped(twice, 3).statistics(), rtol=1e-12)


def test_sac_by_other_distances_refuses():
    with pytest.raises(InputError, match="sac cannot adapt to sums: distance"):
        SAC(distance="ks").fit(monitored_bank()).adapt_moments(grouped(TARGET))


@pytest.mark.parametrize("name", ["rehearsed", "surrogate-curve"])
def test_an_estimate_from_sums_is_that_of_the_rows(name):
    known = estimates.get(name)().fit(monitored_bank(300))
    wanted = known.estimate(TARGET[:200])
    found = known.estimate_moments(grouped(TARGET[:200]), level=0.95)
    assert found.value == pytest.approx(wanted.value, rel=1e-9)
    assert found.n_target == 200
