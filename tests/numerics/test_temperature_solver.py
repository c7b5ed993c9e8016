"""The temperature of least NLL against other searches, and every way it can end at a bound."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from map_data import draw_logits
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from shiftcal.numerics.blocks import SMALL
from shiftcal.numerics.temperature import solve_temperature

# More logits than this are worked on in their own precision.
KERNEL = SMALL


class Logits(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its logits."""

    def fit(self, X, y):
        self.classes_ = np.arange(X.shape[1])
        return self

    def decision_function(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)


def nll(t, logits, labels, weights=None):
    rows = -log_softmax(logits.astype(np.float64) / t, axis=1)
    return np.average(rows[np.arange(len(labels)), labels], weights=weights)


def bounded(logits, labels, weights=None):
    """The best temperature by scipy's bounded search; flat minima limit it to about 1e-7."""
    found = minimize_scalar(
        lambda u: nll(np.exp(u), logits, labels, weights),
        bounds=(np.log(0.01), np.log(100)),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return np.exp(found.x)


@pytest.mark.parametrize("true", [0.15, 0.8, 3.0, 30.0])
@pytest.mark.parametrize(("n", "k"), [(300, 3), (5000, 10), (400, 120)])
def test_it_is_what_scipy_finds(n, k, true):
    logits, labels = draw_logits(n, k, temperature=true, seed=n)
    found = solve_temperature(logits, labels)
    assert found.status.converged
    assert found.temperature == pytest.approx(bounded(logits, labels), rel=1e-6)
    assert found.loss == pytest.approx(nll(found.temperature, logits, labels), rel=1e-9)


def test_it_is_what_scikit_learn_finds(overconfident):
    logits, labels = overconfident
    frozen = FrozenEstimator(Logits().fit(logits, labels))
    theirs = CalibratedClassifierCV(frozen, method="temperature").fit(logits, labels)
    beta = theirs.calibrated_classifiers_[0].calibrators[0].beta_
    # Their search stops at a tolerance of about 1e-8.
    assert solve_temperature(logits, labels).temperature == pytest.approx(1 / beta, rel=1e-7)


def test_large_samples_give_the_temperature_they_were_drawn_with():
    logits, labels = draw_logits(200_000, 4, temperature=2.5, seed=11)
    found = solve_temperature(logits.astype(np.float32), labels)
    # The standard error is about 0.4 %.
    assert found.temperature == pytest.approx(2.5, rel=0.02)
    assert found.temperature == pytest.approx(bounded(logits, labels), rel=1e-6)


@pytest.mark.parametrize("k", [10, 200])
def test_single_precision_costs_less_than_a_millionth(k):
    n = 2 * KERNEL // k
    logits, labels = draw_logits(n, k, temperature=1.7, seed=k)
    single = solve_temperature(logits.astype(np.float32), labels)
    double = solve_temperature(logits.astype(np.float32).astype(np.float64), labels)
    assert single.temperature == pytest.approx(double.temperature, rel=5e-7)
    assert double.temperature == pytest.approx(bounded(logits.astype(np.float32), labels), rel=1e-6)


@pytest.mark.parametrize("n", [400, KERNEL])
@pytest.mark.parametrize("scale", [1e-2, 0.3, 1.0, 7.0, 1e2])
def test_it_scales_with_the_logits(n, scale):
    logits, labels = draw_logits(n, 5, temperature=0.9, seed=2)
    once = solve_temperature(logits, labels, t_range=(1e-3, 1e3)).temperature
    scaled = solve_temperature(scale * logits, labels, t_range=(1e-3, 1e3)).temperature
    assert scaled == pytest.approx(scale * once, rel=1e-9)


@pytest.mark.parametrize("n", [300, KERNEL])
def test_a_weight_of_two_is_a_row_given_twice(n):
    logits, labels = draw_logits(n, 4, temperature=2.0, seed=5)
    times = np.random.default_rng(6).integers(0, 4, n)
    weighted = solve_temperature(logits, labels, times.astype(np.float64))
    repeated = solve_temperature(np.repeat(logits, times, axis=0), np.repeat(labels, times))
    assert weighted.temperature == pytest.approx(repeated.temperature, rel=1e-9)
    assert weighted.loss == pytest.approx(repeated.loss, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 1e6, 1e305])
def test_the_scale_of_weights_does_not_matter(overconfident, scale):
    logits, labels = overconfident
    weights = np.random.default_rng(1).random(len(labels)) + 0.01
    once = solve_temperature(logits, labels, weights)
    scaled = solve_temperature(logits, labels, scale * weights)
    assert scaled.temperature == pytest.approx(once.temperature, rel=1e-9)


def test_weights_are_found_even_where_the_first_look_does_not_go():
    n = 32 * 6144
    logits, labels = draw_logits(n, 3, temperature=2.0, seed=8)
    weights = (np.arange(n) // 128 % 32 != 0).astype(np.float64)  # every 32nd block weighs nothing
    found = solve_temperature(logits, labels, weights)
    kept = weights > 0
    alone = solve_temperature(logits[kept], labels[kept])
    assert found.temperature == pytest.approx(alone.temperature, rel=1e-9)


def test_a_first_guess_from_other_rows_than_the_rest_does_no_harm():
    # The blocks looked at first are easy, all others are hard.
    n = 32 * 6144
    easy, right = draw_logits(n, 5, temperature=0.3, seed=1)
    hard, wrong = draw_logits(n, 5, temperature=3.0, seed=2)
    first = (np.arange(n) // 128 % 32 == 0)[:, None]
    logits = np.where(first, easy, hard).astype(np.float32)
    labels = np.where(first[:, 0], right, wrong)
    found = solve_temperature(logits, labels)
    assert found.temperature == pytest.approx(bounded(logits, labels), rel=1e-6)


def test_the_optimum_may_lie_beside_the_end_of_the_range(overconfident):
    logits, labels = overconfident
    best = solve_temperature(logits, labels).temperature
    inside = solve_temperature(logits, labels, t_range=(best * (1 - 1e-7), 100.0))
    assert inside.status.converged
    assert inside.temperature == pytest.approx(best, rel=1e-9)
    outside = solve_temperature(logits, labels, t_range=(best * (1 + 1e-7), 100.0))
    assert outside.status.code == "at-lower-bound"


@given(
    st.integers(1, 12),
    st.integers(2, 5),
    st.sampled_from([0.01, 1.0, 300.0]),
    st.integers(0, 2**32 - 1),
)
def test_no_other_temperature_in_the_range_is_better(n, k, scale, seed):
    rng = np.random.default_rng(seed)
    logits = scale * rng.standard_normal((n, k)).round(1)  # rounded, so that there are ties
    labels = rng.integers(0, k, n)
    found = solve_temperature(logits, labels)
    assert 0.01 <= found.temperature <= 100
    best = min(nll(t, logits, labels) for t in np.geomspace(0.01, 100, 60))
    assert found.loss <= best + 1e-9 * max(1, best)
    assert found.loss == pytest.approx(nll(found.temperature, logits, labels), rel=1e-6, abs=1e-9)
    at_end = found.temperature in (0.01, 100.0)
    assert found.status.converged != at_end
    assert bool(found.status.message) == at_end


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_no_bit(monkeypatch, dtype):
    logits, labels = draw_logits(120_000, 10, temperature=1.5, seed=4)
    logits = logits.astype(dtype)
    weights = np.random.default_rng(5).random(len(labels))
    found = {}
    for processors in (1, 2, 5):
        monkeypatch.setattr(
            os, "sched_getaffinity", lambda _, p=processors: range(p), raising=False
        )
        found[processors] = solve_temperature(logits, labels, weights)
    assert found[1] == found[2] == found[5]


@pytest.mark.parametrize("n", [60, KERNEL])
@pytest.mark.parametrize(
    ("case", "t_range", "end", "words"),
    [
        ("error-free", (0.01, 100), "lower", "error-free"),
        ("worse than chance", (0.01, 100), "upper", "no better than chance"),
        ("constant", (0.01, 100), "upper", "constant"),
        ("usual", (5.0, 10.0), "lower", "lower yet"),
        ("usual", (0.1, 0.5), "upper", "higher yet"),
    ],
)
def test_a_fit_that_stops_at_an_end_of_the_range_says_why(n, case, t_range, end, words):
    logits, labels = draw_logits(n, 4, temperature=2.0, seed=3)
    if case == "constant":
        logits = np.repeat(np.arange(n, dtype=np.float64)[:, None], 4, axis=1)
    labels = {
        "error-free": logits.argmax(axis=1),
        "worse than chance": logits.argmin(axis=1),
    }.get(case, labels)
    found = solve_temperature(logits, labels, t_range=t_range)
    assert found.temperature == t_range[end == "upper"]
    assert found.status.code == f"at-{end}-bound"
    assert words in found.status.message
    assert found.loss == pytest.approx(nll(found.temperature, logits, labels), rel=1e-9)
