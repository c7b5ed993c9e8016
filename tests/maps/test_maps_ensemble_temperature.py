"""Ensemble temperature scaling against expectation-maximisation and a plain search."""

from __future__ import annotations

import numpy as np
import pytest
from map_data import draw, nll, softmax
from scipy.optimize import minimize

from shiftcal.errors import FitWarning
from shiftcal.maps import EnsembleTemperature
from shiftcal.numerics.fits import solve_mixture


def noisy(n, k, *, share, temperature, seed):
    """Known temperature, but a share of the labels is drawn at random."""
    logits, labels = draw(n, k, temperature=temperature, seed=seed)
    rng = np.random.default_rng(seed + 100)
    return logits, np.where(rng.random(n) < share, rng.integers(0, k, n), labels)


def by_expectation_maximisation(densities, weights, steps):
    point = np.full(densities.shape[1], 1 / densities.shape[1])
    for _ in range(steps):
        shares = densities * point
        shares /= shares.sum(axis=1, keepdims=True)
        point = weights @ shares / weights.sum()
    return point


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mixture_weights_are_those_of_expectation_maximisation(seed):
    rng = np.random.default_rng(seed)
    densities = rng.dirichlet(np.ones(3), 400) + 0.01
    weights = rng.exponential(size=400)
    found = solve_mixture(densities, weights)
    np.testing.assert_allclose(
        found.weights, by_expectation_maximisation(densities, weights, 5000), atol=2e-4
    )
    assert found.gap < 1e-7


def test_the_gap_bounds_what_is_missing():
    rng = np.random.default_rng(4)
    densities = rng.random((300, 4)) + 0.05
    found = solve_mixture(densities, None)
    best = np.log(densities @ found.weights).mean()
    for point in rng.dirichlet(np.ones(4), 200):
        assert np.log(densities @ point).mean() <= best + found.gap + 1e-12


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_the_fit_is_as_good_as_a_search_over_all_weights(temperature):
    logits, labels = noisy(3000, 5, share=0.2, temperature=temperature, seed=5)
    fitted = EnsembleTemperature().fit(logits, labels)
    parts = [softmax(logits / fitted.temperature_), softmax(logits), np.full_like(logits, 0.2)]

    def loss(point):
        w = np.exp(point) / np.exp(point).sum()
        return nll(sum(a * p for a, p in zip(w, parts, strict=True)), labels)

    found = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"maxiter": 4000})
    assert nll(fitted.predict_proba(logits), labels) <= found.fun + 1e-8


def test_a_model_worse_than_chance_keeps_its_predicted_class():
    logits, _ = draw(300, 4, temperature=2.0, seed=9)
    estimator = EnsembleTemperature()
    with pytest.warns(FitWarning, match="no better than chance"):
        estimator.fit(logits, logits.argmin(axis=1))
    np.testing.assert_allclose(estimator.weights_, [1e-6, 0, 1 - 1e-6], atol=1e-12)
    probs = estimator.predict_proba(logits)
    np.testing.assert_array_equal(probs.argmax(axis=1), logits.argmax(axis=1))
