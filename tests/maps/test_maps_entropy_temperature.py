"""Temperature by entropy against a grid, known truths and plain temperature scaling."""

from __future__ import annotations

import numpy as np
import pytest
from map_data import nll, softmax
from scipy.stats import entropy as scipy_entropy

from shiftcal.errors import FitWarning
from shiftcal.maps import EntropyTemperature
from shiftcal.numerics.temperature import log_relative_entropy


def by_hand(logits, a, b):
    """softmax(z / T) with T = exp(a) h^b, written out."""
    probs = softmax(logits)
    h = np.clip(scipy_entropy(probs, axis=1) / np.log(logits.shape[1]), 1e-6, 1)
    return softmax(logits / (np.exp(a) * h**b)[:, None])


def bent(n, k, *, a, b, seed, spread=3.0):
    """Logits and labels, the labels drawn from softmax(z / (exp(a) h^b))."""
    rng = np.random.default_rng(seed)
    # rows of many sizes, so that there are sure ones and unsure ones
    logits = spread * rng.uniform(0.2, 2, (n, 1)) * rng.standard_normal((n, k))
    chances = by_hand(logits, a, b).cumsum(axis=1)
    return logits, (chances < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)


SETS = {
    "rising": bent(1500, 5, a=1.0, b=0.3, seed=1),
    "falling": bent(1500, 5, a=0.2, b=-0.2, seed=2),
    "two classes": bent(1500, 2, a=0.7, b=0.15, seed=3),
    "many classes": bent(800, 40, a=1.0, b=0.5, seed=4),
    "random labels in part": (
        bent(1500, 4, a=0.0, b=0.0, seed=5)[0],
        np.where(np.arange(1500) % 3 == 0, np.arange(1500) % 4, bent(1500, 4, a=0, b=0, seed=5)[1]),
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_the_rows_are_those_of_the_formula(name):
    logits, labels = SETS[name]
    fitted = EntropyTemperature().fit(logits, labels)
    expected = by_hand(logits, fitted.log_scale_, fitted.power_)
    np.testing.assert_allclose(fitted.predict_proba(logits), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SETS)
def test_no_point_of_a_grid_is_better(name):
    logits, labels = SETS[name]
    fitted = EntropyTemperature().fit(logits, labels)
    ours = nll(fitted.predict_proba(logits), labels)
    grid = {
        (a, b): nll(by_hand(logits, a, b), labels)
        for a in np.linspace(-1, 3, 21)
        for b in np.linspace(-0.5, 1, 16)
    }
    best = min(grid, key=grid.get)
    assert ours <= grid[best] + 1e-12
    # a step of the grid from its best point
    assert abs(fitted.log_scale_ - best[0]) < 0.4
    assert abs(fitted.power_ - best[1]) < 0.2


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.3), (0.3, -0.15), (0.5, 0.0)])
def test_a_known_power_is_found(a, b):
    fitted = EntropyTemperature().fit(*bent(20_000, 5, a=a, b=b, seed=6))
    # 20,000 rows tell both to about 0.02
    assert fitted.log_scale_ == pytest.approx(a, abs=0.08)
    assert fitted.power_ == pytest.approx(b, abs=0.04)
    assert fitted.status_.converged


def test_rows_surer_than_any_of_the_fit_are_not_scaled_beyond_the_range():
    logits, labels = SETS["rising"]
    unsure = log_relative_entropy(logits) > np.log(0.05)
    fitted = EntropyTemperature(t_range=(0.5, 50.0)).fit(logits[unsure], labels[unsure])
    sure = np.array([[9.0, 0.0, 0.0, 0.0, 0.0]])
    assert (
        np.exp(fitted.log_scale_ + fitted.power_ * log_relative_entropy(sure))[0] < 0.4
    )  # if it were not for the range
    np.testing.assert_allclose(fitted.predict_proba(sure), softmax(sure / 0.5), rtol=1e-9)


@pytest.mark.parametrize(
    ("t_range", "b", "words"),
    [
        ((0.8, 50.0), 0.3, r"rows of least entropy stopped at 0\.8, the lower end of t_range"),
        ((0.01, 2.0), 0.3, r"rows of greatest entropy stopped at 2, the upper end of t_range"),
    ],
)
def test_an_end_of_the_range_is_reported(t_range, b, words):
    logits, labels = bent(1500, 5, a=1.0, b=b, seed=1)
    estimator = EntropyTemperature(t_range=t_range)
    with pytest.warns(FitWarning, match=words):
        estimator.fit(logits, labels)
    log_t = estimator.log_scale_ + estimator.power_ * log_relative_entropy(logits)
    assert t_range[0] * (1 - 1e-9) <= np.exp(log_t).min()
    assert np.exp(log_t).max() <= t_range[1] * (1 + 1e-9)
