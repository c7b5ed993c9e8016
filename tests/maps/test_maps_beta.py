"""Beta calibration against logistic regression, netcal and a bounded search."""

from __future__ import annotations

import numpy as np
import pytest
from map_data import draw, quiet_fit, top1
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from shiftcal.errors import FitWarning
from shiftcal.maps import Beta
from shiftcal.numerics.fits import beta_log_odds, solve_beta


def two_columns(confidence):
    return np.column_stack([np.log(confidence), -np.log1p(-confidence)])


def drawn_from(a, b, m, *, n, seed):
    """Log-odds of confidences and correctness that follows the curve exactly."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(1.5, 1.5, n)
    truth = expit(beta_log_odds(log_odds, a, b, m))
    return log_odds, (rng.random(n) < truth).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_logistic_regression_where_both_are_positive(weighted):
    logits, labels = draw(4000, 5, temperature=2.5, seed=3)
    weights = np.random.default_rng(4).exponential(size=4000) if weighted else np.ones(4000)
    confidence, correct = top1(logits, labels)
    oracle = LogisticRegression(C=1e10, tol=1e-12, solver="newton-cholesky", max_iter=1000)
    oracle.fit(two_columns(confidence), correct, sample_weight=weights)
    fitted = Beta(ridge=0.0).fit(logits, labels, sample_weight=weights)
    assert oracle.coef_.min() > 0
    np.testing.assert_allclose([fitted.a_, fitted.b_], oracle.coef_[0], rtol=1e-5)
    np.testing.assert_allclose(fitted.m_, oracle.intercept_[0], rtol=1e-5)


def test_the_confidence_is_netcals():
    from netcal.scaling import BetaCalibration

    logits, labels = draw(3000, 5, temperature=2.5, seed=5)
    confidence, correct = top1(logits, labels)
    oracle = BetaCalibration()
    oracle.fit(confidence, correct.astype(int))
    fitted = Beta(ridge=0.0).fit(logits, labels)
    # netcal stops its search early
    np.testing.assert_allclose(
        fitted.predict_proba(logits).max(axis=1), oracle.transform(confidence), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("truth", [(-1.0, 0.8, 0.0), (1.5, -0.6, 0.4), (-0.7, -0.7, 0.5)])
@pytest.mark.parametrize("seed", [7, 8])
def test_coefficients_are_the_best_of_those_not_negative(truth, seed):
    log_odds, correct = drawn_from(*truth, n=3000, seed=seed)
    columns = two_columns(expit(log_odds))

    def loss(theta):
        s = columns @ theta[:2] + theta[2]
        penalty = 1e-6 * ((theta[:2] - 1) ** 2).sum() + 1e-6 * theta[2] ** 2
        return np.mean(np.logaddexp(0, s) - correct * s) + penalty

    starts = ([1, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0])
    bounds = [(0, None), (0, None), (None, None)]
    best = min(minimize(loss, start, bounds=bounds, tol=1e-13).fun for start in starts)
    found = solve_beta(log_odds, correct, np.ones(3000), ridge=1e-6)
    assert found.converged
    assert min(found.a, found.b) == 0
    assert loss(np.array([found.a, found.b, found.m])) <= best + 1e-9


def test_a_set_without_an_optimum_says_so_when_there_is_no_ridge():
    logits = np.array([[1.0, 0.0], [1.5, 0.0], [4.0, 0.0], [5.0, 0.0]])
    labels = np.array([1, 1, 0, 0])
    with pytest.warns(FitWarning, match="do not overlap; use a larger set, or a ridge"):
        Beta(ridge=0.0).fit(logits, labels)
    assert quiet_fit(Beta(), logits, labels).status_.converged
