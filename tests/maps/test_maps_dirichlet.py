"""Dirichlet calibration on data for which it is the right family, and on a real network."""

from __future__ import annotations

import numpy as np
from map_data import nll, softmax

from shiftcal import maps
from shiftcal.maps import Dirichlet


def test_it_finds_the_truth_when_probabilities_are_dirichlet_distributed():
    rng = np.random.default_rng(1)
    shapes = np.array([[6.0, 2.0, 1.0], [1.5, 4.0, 2.0], [1.0, 1.5, 5.0]])
    labels = rng.integers(0, 3, 30_000)
    probs = np.array([rng.dirichlet(shapes[y]) for y in labels])
    # Bayes: log p(y | probs) = sum_j (shape_yj - 1) log p_j - log B(shape_y) + constant
    from scipy.special import gammaln

    log_beta = gammaln(shapes).sum(axis=1) - gammaln(shapes.sum(axis=1))
    truth = softmax(np.log(probs) @ (shapes - 1).T - log_beta)
    fitted = Dirichlet(off_diagonal=0.0, intercept=0.0, ridge=1e-7, input="probabilities")
    found = fitted.fit(probs, labels).predict_proba(probs)
    # 9 free numbers on 30,000 rows
    assert np.abs(found - truth).mean() < 0.01
    np.testing.assert_allclose(
        fitted.weight_ - fitted.weight_.mean(axis=0), shapes - shapes.mean(axis=0), atol=0.15
    )


def test_on_a_real_network_it_improves_on_temperature_scaling(shared_data):
    with np.load(shared_data / "logits" / "jcpeterson_resnet_basic_110_cifar10test.npz") as file:
        logits, labels = file["logits"], file["labels"].astype(int)
    loss = {
        name: nll(maps.get(name)().fit(logits[::2], labels[::2]).predict_proba(logits[1::2]),
                  labels[1::2])
        for name in ("temperature", "vector", "matrix", "dirichlet")
    }  # fmt: skip
    assert max(loss["vector"], loss["matrix"], loss["dirichlet"]) < loss["temperature"]
