"""TransCal's objective against the published formulas, written out here with numpy's own cov."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftcal.methods.weighted import estimated_accuracy


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


def problem(seed, *, n=400):
    """Log-weights of a source, and errors that grow with the weights."""
    rng = np.random.default_rng(seed)
    log_weights = rng.standard_normal(n)
    wrong = rng.random(n) < 1 / (1 + np.exp(1.0 - log_weights))
    return log_weights, wrong


@given(
    seed=st.integers(0, 10_000),
    exponent=st.floats(0.05, 1.0),
    source_confidence=st.floats(0.0, 1.0),
)
def test_the_estimate_is_the_published_one_for_any_problem(seed, exponent, source_confidence):
    log_weights, wrong = problem(seed, n=50)
    ours = estimated_accuracy(log_weights, wrong, exponent, source_confidence=source_confidence)
    theirs = published_accuracy(np.exp(log_weights), wrong, exponent, source_confidence)
    # Fifty samples make the factors large now and then, and rounding with them.
    assert ours == pytest.approx(theirs, abs=1e-8)


def test_exponent_zero_is_the_limit_and_not_a_nan():
    log_weights, wrong = problem(4)
    at_zero = estimated_accuracy(log_weights, wrong, 0.0, source_confidence=0.8)
    near_zero = estimated_accuracy(log_weights, wrong, 1e-7, source_confidence=0.8)
    # The estimate is smooth in the exponent with a slope of order one.
    assert at_zero == pytest.approx(near_zero, abs=1e-6)
    with np.errstate(invalid="ignore"):
        assert np.isnan(published_accuracy(np.exp(log_weights), wrong, 0.0, 0.8))


@pytest.mark.parametrize(("wrong", "accuracy"), [(False, 1.0), (True, 0.0)])
def test_a_source_all_right_or_all_wrong_gives_one_or_zero(wrong, accuracy):
    rng = np.random.default_rng(6)
    log_weights = rng.standard_normal(300)
    # Weights of mean one, as the estimator supposes; only then are weighted errors a fraction.
    log_weights -= np.log(np.exp(log_weights).mean())
    found = estimated_accuracy(log_weights, np.full(300, wrong), 1.0, source_confidence=0.7)
    assert found == pytest.approx(accuracy, abs=1e-12)
