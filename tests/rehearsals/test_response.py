"""The two quadratics and the judge against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from gaussian_world import world
from scipy.spatial.distance import mahalanobis
from scipy.special import logit
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from shiftcal.methods import rehearsals as response
from shiftcal.methods.rehearsals import Draws, Rehearser, fit_cloud, fit_response, quadratic

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


def test_the_quadratic_has_the_terms_of_scikit_learn():
    x = np.random.default_rng(5).standard_normal((6, 4))
    np.testing.assert_allclose(quadratic(x), PolynomialFeatures(2).fit_transform(x), rtol=1e-14)
    assert quadratic(x.reshape(2, 3, 4)).shape == (2, 3, 15)


# RESPONSE is for 250 rows.
HALVES = [(False, response._SAME_RIDGE / 1.4), (True, response._MOVED_RIDGE)]


@pytest.mark.parametrize(("moved", "alpha"), HALVES)
def test_temperatures_are_those_of_a_ridge_on_each_half(moved, alpha):
    found = RESPONSE.answer(ASKED)
    wanted = ridge(SEEN.log_t, SEEN.moved == moved, alpha=alpha)
    assert ((wanted > RESPONSE.low) & (wanted < RESPONSE.high)).mean() > 0.8
    said = found.log_t_moved if moved else found.log_t
    np.testing.assert_allclose(said, np.clip(wanted, RESPONSE.low, RESPONSE.high), atol=1e-9)


@pytest.mark.parametrize(("moved", "alpha"), HALVES)
def test_accuracies_are_those_of_a_ridge_on_log_odds(moved, alpha):
    odds = logit(SEEN.accuracy)
    wanted = ridge(np.clip(odds, -6, 6), SEEN.moved == moved, alpha=alpha)
    found = RESPONSE.answer(ASKED)
    said = found.accuracy_moved if moved else found.accuracy
    np.testing.assert_allclose(logit(said), np.clip(wanted, -6, 6), atol=1e-8)


def judged_weights(prior):
    share = np.where(SEEN.moved, prior, 1 - prior)
    return (
        share
        * WEIGHTS
        / np.where(SEEN.moved, WEIGHTS[SEEN.moved].sum(), WEIGHTS[~SEEN.moved].sum())
    )


def prior_of(size):
    return response._MOVED_PRIOR * size / (size + response._HALVED_AT)


def test_the_judge_is_logistic_regression_with_its_prior():
    share = judged_weights(prior_of(250.0))
    # ridge / 2 |w|² + weighted mean loss; scikit-learn has |w|² / 2 + C Σ share loss
    model = LogisticRegression(C=1 / response._JUDGE_RIDGE, tol=1e-12, max_iter=10_000)
    model.fit(terms(SEEN.statistics), SEEN.moved, sample_weight=share)
    wanted = model.predict_proba(terms(ASKED))[:, 1]
    np.testing.assert_allclose(RESPONSE.answer(ASKED).moved, wanted, atol=1e-5)


def test_on_average_the_judge_believes_its_prior():
    prior = prior_of(250.0)
    said = RESPONSE.answer(SEEN.statistics).moved
    # the constant is not penalised, so that the mean of what it says is the mean of what was
    assert judged_weights(prior) @ said == pytest.approx(prior, rel=1e-6)


def learnt(seen, weights=None, *, size=1e9):
    weights = np.ones(len(seen.log_t)) if weights is None else weights
    return fit_response(size, seen, weights, CLEAN)


def test_distance_is_that_of_mahalanobis():
    x = standardised(SEEN.statistics, slice(None))
    inverse = np.linalg.inv(np.cov(x.T, aweights=WEIGHTS, ddof=0) + 0.01 * np.eye(4))
    wanted = [mahalanobis(row, np.zeros(4), inverse) for row in x]
    np.testing.assert_allclose(RESPONSE.answer(SEEN.statistics).distance, wanted, rtol=1e-9)


def test_half_of_the_samples_of_the_clean_kind_are_within_1_of_it():
    rng = np.random.default_rng(1)
    turned = rng.standard_normal((4, 4))
    known, new = (rng.standard_normal((n, 4)) @ turned + 5.0 for n in (4000, 4000))
    cloud = fit_cloud(known, np.ones(4000), noise=1.0)
    seen = fit_response(100.0, SEEN, WEIGHTS, cloud).answer(new).from_clean
    # three standard errors are 0.024; a hundredth more of each variance makes a little more near
    assert (seen <= 1).mean() == pytest.approx(0.51, abs=0.03)


def test_a_weight_of_three_is_a_rehearsal_seen_three_times():
    rows = np.repeat(np.arange(M), np.where(WEIGHTS > 1, 3, 1))
    often = Draws(SEEN.statistics[rows], SEEN.log_t[rows], SEEN.accuracy[rows], SEEN.moved[rows])
    one = learnt(often).answer(ASKED)
    two = learnt(SEEN, np.where(WEIGHTS > 1, 3.0, 1.0)).answer(ASKED)
    for here, there in zip(one, two, strict=True):
        np.testing.assert_allclose(here, there, atol=1e-8)


def test_statistics_that_differ_by_rounding_only_are_no_trouble():
    x = 0.7 + 1e-16 * np.random.default_rng(0).integers(-3, 4, (40, 4))
    same = Draws(x, np.full(40, 0.3), np.full(40, 0.7), np.arange(40) >= 20)
    found = learnt(same).answer(np.full(4, 0.7 + 1e-15))
    assert found.log_t == pytest.approx(0.3)
    assert found.accuracy == pytest.approx(0.7)
    assert found.distance == pytest.approx(0.0, abs=1e-9)


def test_the_judge_is_found_where_newtons_whole_steps_lose_their_way():
    bank, rng = world(n=400, seed=100), np.random.default_rng(0)
    drawn = [Rehearser(s.logits, s.labels, 0.0, rng).draw(2000, 60, rng) for s in bank]
    names = ("statistics", "log_t", "accuracy", "moved")
    seen = Draws(*(np.concatenate([getattr(one, name) for one in drawn]) for name in names))
    found = learnt(seen).answer(seen.statistics).moved
    x = StandardScaler().fit_transform(seen.statistics)
    x = PolynomialFeatures(2, include_bias=False).fit_transform(x)
    share = np.where(seen.moved, prior_of(1e9), 1 - prior_of(1e9)) / (len(x) / 2)
    model = LogisticRegression(C=1 / response._JUDGE_RIDGE, tol=1e-10, max_iter=10_000)
    wanted = model.fit(x, seen.moved, sample_weight=share).predict_proba(x)[:, 1]
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert found[seen.moved].mean() > 5 * found[~seen.moved].mean()
