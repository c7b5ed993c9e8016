"""Vector scaling against independent optimisers and known weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from map_data import draw, nll, softmax
from scipy.optimize import check_grad, minimize
from scipy.special import log_softmax

from shiftcal.errors import FitWarning, InputError
from shiftcal.maps import Temperature, Vector
from shiftcal.numerics.fits import nll_slopes


def drawn_with(weight, intercept, *, n, seed):
    """Logits and labels from softmax(w * log p + b)."""
    logits, _ = draw(n, len(weight), temperature=1.0, seed=seed)
    truth = softmax(weight * log_softmax(logits, axis=1) + intercept)
    rng = np.random.default_rng(seed + 1)
    return logits, (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=len(weight) - 1)


def loss_of(logits, labels, weights, ridge):
    """The published loss plus the ridge, in torch."""
    t = Temperature().fit(logits, labels, sample_weight=weights).temperature_
    s = torch.log_softmax(torch.tensor(logits), dim=1)
    y, share = torch.tensor(labels), torch.tensor(weights / weights.sum())

    def loss(w, b):
        each = torch.nn.functional.cross_entropy(w * s + b, y, reduction="none")
        return share @ each + ridge * (((w - 1 / t) ** 2).sum() + (b**2).sum())

    return loss


@pytest.mark.parametrize("ridge", [1e-4, 0.01])
def test_the_optimum_is_the_one_another_method_finds(ridge):
    logits, labels = draw(600, 4, temperature=2.0, seed=1)
    weights = np.random.default_rng(2).exponential(size=600)
    loss = loss_of(logits, labels, weights, ridge)

    def value_and_slopes(point):
        both = torch.tensor(point, requires_grad=True)
        value = loss(both[:4], both[4:])
        value.backward()
        return value.item(), both.grad.numpy()

    best = minimize(value_and_slopes, np.zeros(8), jac=True, method="BFGS", options={"gtol": 1e-9})
    fitted = Vector(ridge=ridge).fit(logits, labels, sample_weight=weights)
    np.testing.assert_allclose(fitted.weight_, best.x[:4], atol=1e-5)
    np.testing.assert_allclose(fitted.intercept_, best.x[4:], atol=1e-5)


def test_known_weights_are_found_again():
    weight, intercept = np.array([0.4, 0.9, 1.3]), np.array([0.5, -0.2, -0.3])
    logits, labels = drawn_with(weight, intercept, n=40_000, seed=3)
    fitted = Vector(ridge=1e-6).fit(logits, labels)
    # about three standard errors
    np.testing.assert_allclose(fitted.weight_, weight, atol=0.06)
    found = fitted.intercept_ - fitted.intercept_.mean()
    np.testing.assert_allclose(found, intercept, atol=0.06)


def test_two_classes_are_beta_calibration():
    # log-odds of class 0 are w0 log p - w1 log(1 - p) + b0 - b1: the beta curve, in class 0
    logits, labels = draw(3000, 2, temperature=2.0, seed=4)
    fitted = Vector(ridge=0.0).fit(logits, labels)
    p = softmax(logits)
    columns = np.column_stack([np.log(p[:, 0]), -np.log(p[:, 1]), np.ones(3000)])

    def loss(theta):
        s = columns @ theta
        return np.mean(np.logaddexp(0, s) - (labels == 0) * s)

    best = minimize(loss, np.zeros(3), tol=1e-12)
    assert nll(fitted.predict_proba(logits), labels) <= best.fun + 1e-9
    np.testing.assert_allclose(fitted.weight_, best.x[:2], atol=1e-4)


@pytest.mark.parametrize("shape", [(4,), (4, 4)])
def test_slopes_are_those_of_finite_differences(shape):
    rng = np.random.default_rng(6)
    x, labels = rng.standard_normal((50, 4)), rng.integers(0, 4, 50)
    shares = rng.dirichlet(np.ones(50))

    def split(point):
        return {"weight": point[:-4].reshape(shape), "intercept": point[-4:]}

    def value(point):
        return nll_slopes(x, labels, shares, **split(point)).nll

    def slopes(point):
        found = nll_slopes(x, labels, shares, **split(point))
        return np.concatenate([found.weight.ravel(), found.intercept])

    point = rng.standard_normal(np.prod(shape) + 4)
    assert check_grad(value, slopes, point) < 1e-6


def test_a_strong_ridge_leads_to_temperature_scaling():
    logits, labels = draw(500, 4, temperature=2.0, seed=7)
    np.testing.assert_allclose(
        Vector(ridge=1e6).fit(logits, labels).predict_proba(logits),
        Temperature().fit(logits, labels).predict_proba(logits),
        atol=1e-5,
    )


def test_a_class_that_never_occurs_is_made_unlikely_but_not_impossible():
    logits, labels = draw(2000, 4, temperature=1.0, seed=8)
    seen = labels != 2
    fitted = Vector().fit(logits[seen], labels[seen])
    before, after = softmax(logits)[:, 2].mean(), fitted.predict_proba(logits)[:, 2].mean()
    assert 0 < after < before / 2
    assert np.isfinite(fitted.intercept_).all()


def test_a_set_that_can_be_fitted_without_error_is_reported():
    logits, _ = draw(200, 3, temperature=2.0, seed=9)
    estimator = Vector()
    with pytest.warns(FitWarning, match="makes no mistake on this set, so only the penalties"):
        estimator.fit(logits, np.zeros(200, dtype=int))
    assert estimator.status_.code == "at-upper-bound"
    assert np.isfinite(estimator.weight_).all()


def test_too_few_iterations_are_reported():
    logits, labels = draw(500, 4, temperature=3.0, seed=10)
    estimator = Vector(max_iter=1)
    with pytest.warns(FitWarning, match=r"stopped before it converged.*raise max_iter, now 1,"):
        estimator.fit(logits, labels)
    assert estimator.status_.code == "not-converged"


def test_settings_that_make_no_sense_are_refused():
    logits, labels = draw(50, 3, temperature=1.0, seed=12)
    with pytest.raises(InputError, match="ridge must be a number of at least 0; got -1"):
        Vector(ridge=-1).fit(logits, labels)
    with pytest.raises(InputError, match="max_iter must be a whole number of at least 1"):
        Vector(max_iter=0).fit(logits, labels)
