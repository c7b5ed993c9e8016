"""TransCal's objective against the published formulas, written out here with numpy's own cov."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from shiftcal.methods.weighted import TransCal, estimated_accuracy


def published_accuracy(weights, wrong, exponent, source_confidence):
    """Steps 2 and 4 of the published method; 0/0 where it is 0/0."""
    w = weights**exponent
    error = wrong.astype(float)
    a = w * error
    eta_1 = -np.cov(a, w)[0, 1] / np.var(w, ddof=1)
    right = 1 - error
    eta_2 = -np.cov(a + eta_1 * (w - 1), right)[0, 1] / np.var(right, ddof=1)
    risk = a.mean() + eta_1 * (w.mean() - 1) + eta_2 * (right.mean() - source_confidence)
    return 1 - risk


def mean_confidence(logits, temperature):
    p = np.exp((logits - logits.max(axis=1, keepdims=True)) / temperature)
    return (p.max(axis=1) / p.sum(axis=1)).mean()


def problem(seed, *, scale=3.0, spread=0.3, n=400, m=600):
    """Target logits, source log-weights and source errors that grow with the weights."""
    rng = np.random.default_rng(seed)
    log_weights = spread * rng.standard_normal(n)
    wrong = rng.random(n) < 1 / (1 + np.exp(1.0 - log_weights))
    return scale * rng.standard_normal((m, 5)), log_weights, wrong


@given(
    seed=st.integers(0, 10_000),
    exponent=st.floats(0.05, 1.0),
    source_confidence=st.floats(0.0, 1.0),
)
def test_the_estimate_is_the_published_one_for_any_problem(seed, exponent, source_confidence):
    _, log_weights, wrong = problem(seed, spread=1.0, n=50)
    ours = estimated_accuracy(log_weights, wrong, exponent, source_confidence=source_confidence)
    theirs = published_accuracy(np.exp(log_weights), wrong, exponent, source_confidence)
    # Fifty samples make the factors large now and then, and rounding with them.
    assert ours == pytest.approx(theirs, abs=1e-8)


def test_exponent_zero_is_the_limit_and_not_a_nan():
    _, log_weights, wrong = problem(4, spread=1.0)
    at_zero = estimated_accuracy(log_weights, wrong, 0.0, source_confidence=0.8)
    near_zero = estimated_accuracy(log_weights, wrong, 1e-7, source_confidence=0.8)
    # The estimate is smooth in the exponent with a slope of order one.
    assert at_zero == pytest.approx(near_zero, abs=1e-6)
    with np.errstate(invalid="ignore"):
        assert np.isnan(published_accuracy(np.exp(log_weights), wrong, 0.0, 0.8))


@pytest.mark.parametrize(("wrong", "accuracy"), [(False, 1.0), (True, 0.0)])
def test_a_source_all_correct_or_all_wrong_gives_one_or_zero(wrong, accuracy):
    rng = np.random.default_rng(6)
    log_weights = rng.standard_normal(300)
    # Weights of mean one, as the estimator supposes; only then are weighted errors a fraction.
    log_weights -= np.log(np.exp(log_weights).mean())
    found = estimated_accuracy(log_weights, np.full(300, wrong), 1.0, source_confidence=0.7)
    assert found == pytest.approx(accuracy, abs=1e-12)


def solved(logits, log_weights, wrong, *, source_confidence, reading):
    """T and details of TransCal for weights that are given instead of learnt."""
    method = TransCal(reading=reading)
    method.wrong_, method.source_confidence_ = wrong, source_confidence
    return method._solve(logits, log_weights, np.exp(log_weights))[:2]


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize(("reading", "lower"), [("official", 1.0), ("free", 0.01)])
def test_the_search_ends_where_scipy_does_on_the_published_objective(seed, reading, lower):
    logits, log_weights, wrong = problem(seed)
    weights = np.exp(log_weights)

    def objective(x):
        return abs(mean_confidence(logits, x[0]) - published_accuracy(weights, wrong, x[1], 0.75))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # 0/0 at exponent zero
        found = minimize(
            objective, np.array([2.0, 0.5]), method="SLSQP", bounds=((lower, None), (0.0, 1.0))
        )
    t, details = solved(logits, log_weights, wrong, source_confidence=0.75, reading=reading)
    # Differences over 1.5e-8 steer the search: rounding of 1e-16 is 1e-8 in its slopes.
    assert t == pytest.approx(found.x[0], rel=1e-4)
    assert details["lambda"] == pytest.approx(found.x[1], abs=1e-3)
    assert details["objective"] == pytest.approx(found.fun, abs=1e-5)


@pytest.mark.parametrize(("reading", "lower"), [("official", 1.0), ("free", 0.01)])
def test_an_accuracy_above_every_confidence_drives_t_to_its_bound(reading, lower):
    logits, log_weights, _ = problem(1)
    none = np.zeros(400, dtype=bool)
    t, details = solved(logits, log_weights, none, source_confidence=0.999, reading=reading)
    assert t == pytest.approx(lower)
    assert details["estimated_accuracy"] == pytest.approx(1.0)
