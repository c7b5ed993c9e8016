"""The stepwise norm: a constant value, and the gradient that matters."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numeric_gradient import numeric_gradient

from shiftcal.adaptation.losses.norms import stepwise_norm


def draw(b=4, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((b, d))


def tensor(array, dtype=torch.float64):
    return torch.tensor(array, dtype=dtype, requires_grad=True)


def by_loops(f, delta, held):
    """The norms of ``held`` are those no gradient goes through."""
    total = 0.0
    for row, other in zip(f, held, strict=True):
        norm, kept = (sum(value * value for value in x) ** 0.5 for x in (row, other))
        total += (norm - (kept + delta)) ** 2
    return total / len(f)


@pytest.mark.parametrize("delta", [1.0, 0.3, 2.5])
def test_value_and_gradient_are_those_of_loops_with_the_norms_held(delta):
    f = draw()
    features = tensor(f)
    loss = stepwise_norm(features, delta=delta)
    assert loss.shape == ()
    assert loss.item() == pytest.approx(by_loops(f, delta, f), rel=1e-12)
    (3 * loss).backward()
    expected = numeric_gradient(lambda x: 3 * by_loops(x, delta, f), f)
    # Central differences with steps of 1e-5 are good to about 1e-10.
    np.testing.assert_allclose(features.grad, expected, atol=2e-9)


def test_it_is_the_plain_formula_under_autograd():
    features = tensor(draw(6, 5))
    norms = features.norm(dim=1)
    plain = (norms - (norms.detach() + 0.3)).square().mean()
    (expected,) = torch.autograd.grad(plain, features)
    (found,) = torch.autograd.grad(stepwise_norm(features, delta=0.3), features)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_step_is_one_by_default():
    assert stepwise_norm(tensor(draw())).item() == 1.0


def test_two_domains_are_the_sum_of_each_alone():
    both, alone = ([tensor(draw(6, 5)), tensor(2 - draw(6, 5))] for _ in range(2))
    loss = stepwise_norm(torch.cat(both), domains=2, delta=0.3)
    apart = sum(stepwise_norm(each, delta=0.3) for each in alone)
    assert loss.item() == pytest.approx(apart.item(), rel=1e-15)
    (3 * loss).backward()
    (3 * apart).backward()
    for one, other in zip(both, alone, strict=True):
        np.testing.assert_allclose(one.grad, other.grad, rtol=1e-14)


@pytest.mark.parametrize("delta", [1.0, -0.5])
def test_a_step_down_lengthens_every_row_alike_and_turns_none(delta):
    features = tensor(draw(5, 7))
    stepwise_norm(features, delta=delta).backward()
    with torch.no_grad():
        moved = features - 0.1 * features.grad
        grown = moved.norm(dim=1) - features.norm(dim=1)
        np.testing.assert_allclose(grown, 0.1 * 2 * delta / 5, rtol=1e-12)
        cosine = torch.nn.functional.cosine_similarity(moved, features)
        np.testing.assert_allclose(cosine, 1, rtol=1e-14)


def test_the_gradient_is_the_same_however_long_the_rows_are():
    near, far = tensor(draw()), tensor(1e6 * draw())
    for features in (near, far):
        stepwise_norm(features).backward()
    np.testing.assert_allclose(near.grad, far.grad, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 1e-42, 1e-25, 1e25, 3e38])
def test_rows_without_a_length_that_float32_can_hold_get_no_gradient_that_is_none(value):
    f = draw(3, 4)
    f[1] = value
    features = tensor(f, torch.float32)
    loss = stepwise_norm(features)
    loss.backward()
    assert loss.item() == 1
    assert torch.isfinite(features.grad).all()
    # No row is pulled harder than a row of ordinary length.
    assert (features.grad.norm(dim=1) <= 2 / 3 * (1 + 1e-6)).all()
    np.testing.assert_allclose(features.grad[[0, 2]].norm(dim=1), 2 / 3, rtol=1e-6)


def test_a_row_of_zeros_gets_no_gradient():
    features = torch.zeros(2, 3, requires_grad=True)
    stepwise_norm(features).backward()
    assert torch.equal(features.grad, torch.zeros(2, 3))
