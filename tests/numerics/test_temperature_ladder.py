"""The likelihood between the steps of the ladder, against scipy at the very temperature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from shiftcal.numerics.temperature import BETAS, FRACTION_BITS, Likelihood, ladder_sums


def likelihood_of(z, y):
    sums, log_sums, _ = ladder_sums(z)
    moments = np.array([s / len(z) * 2.0**-FRACTION_BITS for s in sums]).reshape(3, -1)
    z = z.astype(np.float64)
    regret = np.mean(z.max(axis=1) - z[np.arange(len(z)), y])
    return Likelihood(moments, regret=regret, at_one=log_sums.mean() + regret)


def drawn(n, k, scale, *, seed):
    rng = np.random.default_rng(seed)
    z = scale * rng.standard_normal((n, k))
    noisy = (z + 0.5 * scale * rng.gumbel(size=z.shape)).argmax(axis=1)
    return z, np.where(rng.random(n) < 0.2, rng.integers(0, k, n), noisy)


def true_nll(z, y, beta):
    return -log_softmax(beta * z, axis=1)[np.arange(len(z)), y].mean()


@pytest.mark.parametrize("k", [2, 10, 300])
@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_value_and_minimum_are_those_of_scipy(k, scale):
    z, y = drawn(500, k, scale, seed=k)
    found = likelihood_of(z, y)
    for beta in (0.01, 0.3, 0.999, 1.0, 1.5, 7.7, 100.0):
        # the polynomial's error, which at a hundredfold sharpness is that of a loss of thousands
        assert found.nll(beta) == pytest.approx(true_nll(z, y, beta), rel=1e-9, abs=1e-8)
    best = minimize_scalar(
        lambda u: true_nll(z, y, np.exp(u)), bounds=(np.log(0.01), np.log(100)), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    # scipy compares values, whose minimum it cannot tell closer than the root of their rounding
    assert found.minimum((0.01, 100.0)) == pytest.approx(np.exp(best.x), rel=2e-6)


def test_moments_at_a_step_are_those_of_softmax():
    z, _ = drawn(50, 7, 3.0, seed=1)
    sums, log_sums, squares = ladder_sums(z)
    got = np.array([s * 2.0**-FRACTION_BITS for s in sums]).reshape(3, len(BETAS))
    for j in (0, 40, 56, 80, 111):
        x = BETAS[j] * (z - z.max(axis=1, keepdims=True))
        p = softmax(x, axis=1)
        mean = (p * x).sum(axis=1)
        centred = x - mean[:, None]
        wanted = [mean, (p * centred**2).sum(axis=1), (p * centred**3).sum(axis=1)]
        # fifty rows, each rounded to 2**-45, after up to thirteen squarings
        assert got[:, j] == pytest.approx([w.sum() for w in wanted], rel=1e-9, abs=1e-10)
    p = softmax(z, axis=1)
    assert log_sums == pytest.approx(-np.log(p.max(axis=1)), abs=1e-12)
    assert squares == pytest.approx((p**2).sum(axis=1), rel=1e-12)


def test_without_a_minimum_inside_there_is_none():
    z = np.array([[3.0, 0.0], [0.0, 2.0]])
    assert likelihood_of(z, np.array([0, 1])).minimum((0.01, 100.0)) is None
    assert likelihood_of(z, np.array([1, 0])).minimum((0.01, 100.0)) is None


def test_a_million_classes_of_equal_size_do_not_overflow():
    z = np.zeros((200, 50_000), np.float32)
    z[:, 0] = np.log(50_000.0)
    sums, _, _ = ladder_sums(z)
    one = len(BETAS) // 2
    # half of the mass lies log(50,000) below the top
    assert sums[one] * 2.0**-FRACTION_BITS == pytest.approx(-200 * np.log(50_000) / 2, rel=1e-4)
