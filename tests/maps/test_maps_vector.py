"""Vector scaling against independent optimisers and known weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from map_data import draw, nll, softmax
from scipy.optimize import minimize

from shiftcal.errors import FitWarning
from shiftcal.maps import Temperature, Vector


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
