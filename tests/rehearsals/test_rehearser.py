"""Draws of a surrogate set: their means, and the temperature that was best for each."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import draw
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from shiftcal.methods import rehearsals as drawing
from shiftcal.methods.rehearsals import output_statistics, row_moments

LOGITS, LABELS = draw(400, 0.8, seed=3)
LOG_T = np.log(1.5)


def rehearser(logits=LOGITS, labels=LABELS, log_t=LOG_T, seed=0):
    return drawing.Rehearser(logits, labels, log_t, np.random.default_rng(seed))


def nll(log_t, logits, labels, weights):
    losses = -log_softmax(logits / np.exp(log_t), axis=1)[np.arange(len(labels)), labels]
    return weights @ losses / weights.sum()


def best_log_t(logits, labels, weights):
    within = (LOG_T - np.log(4), LOG_T + np.log(4))
    found = minimize_scalar(
        nll, bounds=within, args=(logits, labels, weights), options={"xatol": 1e-9}
    )
    return found.x


@pytest.fixture
def known_draws(monkeypatch):
    """Draws whose weights, and how often every row comes, are written down here."""
    rng = np.random.default_rng(8)
    times = rng.poisson(1.0, (12, 400))
    weights = rng.dirichlet(np.ones(400), 12)
    left = iter((weights[:6], weights[6:]))

    def known(labels, k, mixture, *, n_draws, rng):
        return next(left)

    class Counted:
        def poisson(self, expected):
            np.testing.assert_array_equal(expected, 400 * weights)
            return times

    monkeypatch.setattr(drawing, "rehearsed_weights", known)
    return Counted(), weights, times


def test_the_temperature_of_a_draw_is_that_of_least_nll_under_its_prior(known_draws):
    rng, weights, _ = known_draws
    found = rehearser().draw(400, 12, rng)
    wanted = [best_log_t(LOGITS, LABELS, w) for w in weights]
    # a parabola through points 0.14 apart
    np.testing.assert_allclose(found.log_t, wanted, atol=5e-3)


def test_the_accuracy_is_that_under_its_prior_and_the_statistics_those_of_its_rows(known_draws):
    rng, weights, times = known_draws
    found = rehearser().draw(400, 12, rng)
    right = LOGITS.argmax(axis=1) == LABELS
    for j in range(12):
        assert found.accuracy[j] == pytest.approx(np.average(right, weights=weights[j]), rel=1e-9)
        rows = np.repeat(np.arange(400), times[j])
        wanted = output_statistics(row_moments(LOGITS[rows]).mean(axis=0))
        np.testing.assert_allclose(found.statistics[j], wanted, rtol=1e-9)


def test_a_parabola_has_its_minimum_found_exactly():
    grid = np.linspace(-1, 1, 21)
    at = np.array([-0.83, 0.0, 0.412])
    losses = 2.0 + 3.0 * (grid - at[:, None]) ** 2
    np.testing.assert_allclose(drawing._minimum(grid, losses), at, atol=1e-12)


def test_the_first_half_keeps_the_prior_and_the_second_moves_it():
    found = rehearser().draw(2000, 80, np.random.default_rng(1))
    np.testing.assert_array_equal(found.moved, np.arange(80) >= 40)
    spread = found.statistics[:, 2]
    assert spread[~found.moved].std() < 0.5 * spread[found.moved].std()
    assert [len(x) for x in (found.statistics, found.log_t, found.accuracy)] == [80, 80, 80]


def test_draws_that_keep_the_prior_have_the_truth_of_the_set_and_statistics_around_its_own():
    calm = rehearser().draw(400, 600, np.random.default_rng(2))
    own = slice(0, 150)  # the first half begins with those that have the same prior
    np.testing.assert_allclose(
        calm.accuracy[own], (LOGITS.argmax(axis=1) == LABELS).mean(), rtol=1e-12
    )
    np.testing.assert_allclose(calm.log_t[own], best_log_t(LOGITS, LABELS, np.ones(400)), atol=5e-3)
    entropies = row_moments(LOGITS)[:, 1] / np.log(6)
    error = entropies.std() / np.sqrt(400)
    assert calm.statistics[own, 1].mean() == pytest.approx(
        entropies.mean(), abs=4 * error / np.sqrt(150)
    )
    assert calm.statistics[own, 1].std() == pytest.approx(error, rel=0.25)


def test_small_draws_vary_more_and_have_less_entropy_of_the_mean():
    few, many = (rehearser().draw(size, 200, np.random.default_rng(2)) for size in (50, 5000))
    assert (few.statistics[:60].std(axis=0) > 5 * many.statistics[:60].std(axis=0)).all()
    assert few.statistics[:60, 2].mean() < many.statistics[:60, 2].mean()


def test_of_more_rows_than_tell_anything_some_are_drawn():
    logits, labels = draw(6000, 0.8, seed=1)
    some = rehearser(logits, labels)
    assert some.n == 5000
    assert rehearser(logits[:5000], labels[:5000]).n == 5000
    again, other = (rehearser(logits, labels, seed=s) for s in (0, 1))
    one, two, three = (r.draw(5000, 4, np.random.default_rng(7)) for r in (some, again, other))
    np.testing.assert_array_equal(one.statistics, two.statistics)
    assert (one.statistics != three.statistics).any()


def test_huge_logits_and_classes_without_rows_give_finite_answers():
    labels = np.minimum(LABELS, 3)
    found = rehearser(1e4 * LOGITS, labels, np.log(1e4)).draw(100, 40, np.random.default_rng(0))
    for value in (found.statistics, found.log_t, found.accuracy):
        assert np.isfinite(value).all()
    assert abs(found.log_t - np.log(1e4)).max() <= np.log(4) + 1e-12
