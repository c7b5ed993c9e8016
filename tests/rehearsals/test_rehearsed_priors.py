"""Weights for class priors of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.methods.rehearsals import CALM, MOVED, rehearsed_weights

LABELS = np.repeat([0, 1, 3], [60, 30, 10])  # classes 2 and 4 have no rows


def weights_of(mixture, n_draws=50, *, labels=LABELS, k=5, seed=0):
    rng = np.random.default_rng(seed)
    return rehearsed_weights(labels, k, mixture, n_draws=n_draws, rng=rng)


def priors_of(weights, labels=LABELS, k=5):
    return np.stack([weights[:, labels == c].sum(axis=1) for c in range(k)], axis=1)


@pytest.mark.parametrize("mixture", [CALM, MOVED])
def test_the_weights_of_a_draw_add_up_to_1_and_are_even_in_a_class(mixture):
    weights = weights_of(mixture)
    assert weights.shape == (50, 100)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    for c in (0, 1, 3):
        own = weights[:, c == LABELS]
        np.testing.assert_array_equal(own, np.broadcast_to(own[:, :1], own.shape))


def test_most_calm_draws_have_the_prior_as_it_was_and_no_moved_one_has():
    (share,) = (share for share, concentration in CALM if concentration is None)
    even = {m: np.isclose(weights_of(m, 200), 0.01, rtol=1e-12).all(axis=1) for m in (CALM, MOVED)}
    assert even[CALM].sum() == round(200 * share) > 100
    assert not even[MOVED].any()


@pytest.mark.parametrize("n_draws", [10, 60, 200])
def test_every_part_of_a_mixture_has_its_share_of_the_draws(n_draws):
    mixture = ((0.3, None), (0.5, 1e9), (0.2, 1e-3))  # as it was, nearly so, one class alone
    largest = priors_of(weights_of(mixture, n_draws)).max(axis=1)
    assert (largest == largest[0]).sum() == 0.3 * n_draws
    assert (largest < 0.7).sum() == 0.8 * n_draws
    assert (largest[round(0.8 * n_draws) :] > 0.7).mean() > 0.8


@pytest.mark.parametrize("concentration", [0.3, 1.0, 30.0])
def test_priors_have_the_moments_of_the_dirichlet_distribution(concentration):
    priors = priors_of(weights_of(((1.0, concentration),), 4000))[:, [0, 1, 3]]
    base = np.array([0.6, 0.3, 0.1])
    variance = base * (1 - base) / (concentration * 3 + 1)  # Dirichlet(a K π) over K = 3 classes
    deviation = 4 * np.sqrt(variance / 4000)
    assert (np.abs(priors.mean(axis=0) - base) < deviation).all()
    np.testing.assert_allclose(priors.var(axis=0), variance, rtol=0.15)


def test_a_thousand_classes_of_a_few_rows_can_be_drawn():
    labels = np.random.default_rng(0).integers(0, 1000, 2000)
    weights = weights_of(MOVED, 10, labels=labels, k=1000)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-9)
