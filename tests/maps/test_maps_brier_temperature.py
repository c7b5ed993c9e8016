"""The temperature of least Brier score against a slow search, and its ends."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_logits import draw_logits
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from shiftcal import maps
from shiftcal.errors import FitWarning
from shiftcal.numerics import temperature as brier_slope
from shiftcal.numerics.temperature import solve_brier_temperature

BrierTemperature = maps.get("brier-temperature")


def brier(temperature, logits, labels, weights=None):
    probs = softmax(logits.astype(np.float64) / temperature, axis=1)
    probs[np.arange(len(labels)), labels] -= 1
    return np.average((probs**2).sum(axis=1), weights=weights)


def by_search(logits, labels, weights=None):
    """The best of 200 temperatures, then scipy's bounded search around it."""
    grid = np.linspace(np.log(0.01), np.log(100), 200)
    best = grid[np.argmin([brier(np.exp(u), logits, labels, weights) for u in grid])]
    found = minimize_scalar(
        lambda u: brier(np.exp(u), logits, labels, weights),
        bounds=(best - 0.1, best + 0.1),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return np.exp(found.x)


@pytest.mark.parametrize("temperature", [0.2, 1.0, 4.0])
@pytest.mark.parametrize(("n", "k"), [(500, 3), (4000, 10)])
def test_it_is_what_a_slow_search_finds(n, k, temperature):
    logits, labels = draw_logits(n, k, temperature=temperature, seed=k)
    weights = np.random.default_rng(3).random(n)
    for w in (None, weights):
        found = solve_brier_temperature(logits, labels, w)
        assert found.status.converged
        # Comparing values finds a minimum to the square root of their precision only.
        assert found.temperature == pytest.approx(by_search(logits, labels, w), rel=1e-6)
        assert found.brier == pytest.approx(brier(found.temperature, logits, labels, w), rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("beta", [0.02, 0.9, 50.0])
def test_the_kernel_agrees_with_numpy(monkeypatch, dtype, weighted, beta):
    logits, labels = draw_logits(300, 70, temperature=1.5, seed=1)
    weights = np.random.default_rng(2).random(300) if weighted else None
    data = (logits.astype(dtype), labels, weights)
    monkeypatch.setattr(brier_slope, "SMALL", 0)
    compiled = brier_slope.brier_slope(data, beta)
    monkeypatch.setattr(brier_slope, "SMALL", logits.size + 1)
    plain = brier_slope.brier_slope(data, beta)
    precision = 1e-6 if dtype is np.float32 else 1e-12
    assert compiled == pytest.approx(plain, rel=precision, abs=precision)


@pytest.mark.parametrize(("many", "temperature"), [(100, 0.0213), (400, 43.1)])
def test_of_two_minima_the_lower_is_taken(many, temperature):
    # Rows of tiny logits want a temperature of 0.02, rows of huge ones, half of them wrong, one
    # of 43; in between the score has a hump, and which side is lower depends on their number.
    tiny, right = draw_logits(300, 3, temperature=0.02, seed=1)
    half_wrong = np.where(np.arange(many) % 2 == 0, 0, 1 + np.arange(many) // 2 % 2)
    logits = np.concatenate([tiny, np.tile([[30.0, 0.0, 0.0]], (many, 1))])
    labels = np.concatenate([right, half_wrong])
    scores = np.array([brier(t, logits, labels) for t in np.geomspace(0.01, 100, 400)])
    dips = (scores[1:-1] < scores[:-2]) & (scores[1:-1] < scores[2:])
    assert dips.sum() == 2
    found = solve_brier_temperature(logits, labels)
    assert found.temperature == pytest.approx(temperature, rel=0.01)
    assert found.brier <= scores.min()


def test_every_end_of_the_range_says_why(overconfident):
    logits, labels = overconfident
    with pytest.warns(FitWarning, match="error-free"):
        assert BrierTemperature().fit(logits, logits.argmax(axis=1)).temperature_ == 0.01
    with pytest.warns(FitWarning, match="no better than chance"):
        assert BrierTemperature().fit(logits, logits.argmin(axis=1)).temperature_ == 100.0
    with pytest.warns(FitWarning, match="every row of logits is constant"):
        assert BrierTemperature().fit(np.ones((4, 3)) * 7, [0, 1, 2, 0]).temperature_ == 100.0
    with pytest.warns(FitWarning, match="lower yet"):
        assert BrierTemperature(t_range=(5, 9)).fit(logits, labels).temperature_ == 5.0
    with pytest.warns(FitWarning, match="higher yet"):
        assert BrierTemperature(t_range=(0.1, 0.5)).fit(logits, labels).temperature_ == 0.5
