"""Matrix scaling against logistic regression and an independent optimiser."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from map_data import draw, quiet_fit, softmax
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from shiftcal.errors import FitWarning
from shiftcal.maps import Dirichlet, Matrix, Temperature
from shiftcal.numerics.fits import linear_softmax


def centred(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def log_probs(logits):
    return np.log(softmax(logits))


FAMILIES = [(Matrix, centred), (Dirichlet, log_probs)]


@pytest.mark.parametrize(("family", "features"), FAMILIES)
def test_without_penalties_it_is_multinomial_logistic_regression(family, features):
    logits, labels = draw(1500, 4, temperature=2.0, seed=1)
    weights = np.random.default_rng(2).exponential(size=1500)
    oracle = LogisticRegression(C=1e10, tol=1e-10, max_iter=5000)
    oracle.fit(features(logits), labels, sample_weight=weights)
    fitted = family(off_diagonal=0.0, intercept=0.0, ridge=0.0)
    fitted.fit(logits, labels, sample_weight=weights)
    np.testing.assert_allclose(
        fitted.predict_proba(logits), oracle.predict_proba(features(logits)), rtol=0, atol=2e-5
    )


@pytest.mark.parametrize(("family", "features"), FAMILIES)
@pytest.mark.parametrize("penalties", [(1.0, 1.0, 0.01), (0.01, 0.1, 0.0), (0.0, 0.0, 1e-3)])
def test_the_optimum_is_the_one_another_method_finds(family, features, penalties):
    off_diagonal, intercept, ridge = penalties
    logits, labels = draw(400, 4, temperature=2.0, seed=3)
    t = Temperature().fit(logits, labels).temperature_
    x, y, eye = torch.tensor(features(logits)), torch.tensor(labels), torch.eye(4).double()

    def value_and_slopes(point):
        both = torch.tensor(point, requires_grad=True)
        w, b = both[:16].reshape(4, 4), both[16:]
        value = torch.nn.functional.cross_entropy(x @ w.T + b, y)
        value = value + off_diagonal * ((w * (1 - eye)) ** 2).sum() + intercept * (b**2).sum()
        value = value + ridge * (((w - eye / t) ** 2).sum() + (b**2).sum())
        value.backward()
        return value.item(), both.grad.numpy()

    start = np.append(np.eye(4).ravel(), np.zeros(4))
    options = {"gtol": 1e-8, "maxiter": 5000}
    best = minimize(value_and_slopes, start, jac=True, method="BFGS", options=options)
    fitted = family(off_diagonal=off_diagonal, intercept=intercept, ridge=ridge)
    fitted.fit(logits, labels)
    found, slopes = value_and_slopes(np.append(fitted.weight_.ravel(), fitted.intercept_))
    assert abs(found - best.fun) < 1e-10
    assert np.abs(slopes).max() < 1e-5


def test_matrix_scaling_is_dirichlet_calibration_with_equal_row_sums():
    rng = np.random.default_rng(5)
    logits, weight, b = rng.normal(0, 3, (50, 4)), rng.normal(size=(4, 4)), rng.normal(size=4)
    # to add a constant to a row of W does nothing to centred logits
    even = weight + (1.7 - weight.sum(axis=1, keepdims=True)) / 4
    np.testing.assert_allclose(
        linear_softmax(centred(logits), weight, b),
        linear_softmax(log_probs(logits), even, b),
        rtol=1e-9,
    )
    assert not np.allclose(
        linear_softmax(centred(logits), weight, b), linear_softmax(log_probs(logits), weight, b)
    )


@pytest.mark.parametrize("family", [Matrix, Dirichlet])
def test_strong_penalties_lead_to_temperature_scaling(family):
    logits, labels = draw(500, 4, temperature=2.0, seed=6)
    penalties = {"off_diagonal": 1e6, "intercept": 1e6, "ridge": 1e6}
    np.testing.assert_allclose(
        family(**penalties).fit(logits, labels).predict_proba(logits),
        Temperature().fit(logits, labels).predict_proba(logits),
        atol=1e-5,
    )


def test_too_few_iterations_are_reported():
    logits, labels = draw(500, 4, temperature=3.0, seed=10)
    with pytest.warns(FitWarning, match="stopped before it converged"):
        Matrix(max_iter=1).fit(logits, labels)


@pytest.mark.parametrize("family", [Matrix, Dirichlet])
def test_a_set_that_only_this_map_fits_without_error_is_reported(family):
    logits, _ = draw(300, 3, temperature=1.0, seed=11)
    _, middle, top = np.sort(logits, axis=1).T
    logits = logits[top - middle > 1]
    turned = np.roll(logits, 1, axis=1)  # the label is never the largest, and yet all is known
    estimator = quiet_fit(family(off_diagonal=0.0, ridge=1e-6), turned, logits.argmax(axis=1))
    assert estimator.status_.code == "at-upper-bound"
    assert (estimator.predict_proba(turned).argmax(axis=1) == logits.argmax(axis=1)).all()
