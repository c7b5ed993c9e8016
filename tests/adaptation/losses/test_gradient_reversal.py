"""Gradient reversal and its schedule."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from shiftcal.adaptation.losses.reversal import reverse, warm_start


def test_forward_is_the_identity_and_copies_nothing():
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    y = reverse(x, 0.3)
    assert torch.equal(x, y)
    assert y.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("coefficient", [0.0, 0.1, 1.0, 2.5])
def test_the_gradient_is_multiplied_with_minus_the_coefficient(coefficient):
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    (reverse(x, coefficient) ** 2).sum().backward()
    np.testing.assert_allclose(x.grad, -coefficient * 2 * x.detach(), rtol=1e-15)


def test_reversed_twice_it_passes_gradcheck_as_the_identity_times_the_coefficients():
    x = torch.randn(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda v: reverse(reverse(v, 4.0), 0.25).sin(), x)
    assert torch.autograd.gradgradcheck(lambda v: reverse(reverse(v, 4.0), 0.25).sin(), x)


def test_it_commutes_with_a_linear_map():
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(5, 3, generator=generator, requires_grad=True)
    map_ = torch.randn(3, 7, generator=generator)
    (before,) = torch.autograd.grad((reverse(x, 0.4) @ map_).exp().sum(), x)
    (after,) = torch.autograd.grad(reverse(x @ map_, 0.4).exp().sum(), x)
    # The same products, rounded at another place.
    np.testing.assert_allclose(before, after, rtol=1e-5)


def test_one_step_makes_what_comes_after_better_and_what_comes_before_worse():
    before = torch.tensor([2.0], requires_grad=True)
    after = torch.tensor([3.0], requires_grad=True)
    loss = (reverse(before, 1.0) * after).square().sum()
    loss.backward()
    with torch.no_grad():
        assert (before * (after - 0.01 * after.grad)).square() < loss
        assert ((before - 0.01 * before.grad) * after).square() > loss


def test_the_schedule_has_the_values_of_the_paper():
    assert warm_start(0) == 0
    assert warm_start(1000) == pytest.approx(0.46211715726)
    assert warm_start(1000, hi=0.1) == pytest.approx(0.046211715726)
    assert warm_start(10**9) == pytest.approx(1)
    assert warm_start(0, lo=0.2, hi=0.9) == pytest.approx(0.2)
    assert warm_start(10**9, lo=0.2, hi=0.9) == pytest.approx(0.9)


@pytest.mark.parametrize("step", [0, 1, 17, 400, 1000, 9_999, 10**7])
@pytest.mark.parametrize(("lo", "hi", "alpha", "n"), [(0, 1, 1, 1000), (0.1, 0.7, 10, 300)])
def test_the_schedule_is_the_logistic_one(step, lo, hi, alpha, n):
    expected = 2 * (hi - lo) / (1 + math.exp(-alpha * step / n)) - (hi - lo) + lo
    found = warm_start(step, lo=lo, hi=hi, alpha=alpha, max_iters=n)
    assert isinstance(found, float)
    # Subtracting numbers near 1 leaves the expected value with an absolute error of some 1e-16.
    assert found == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_the_schedule_never_falls():
    values = [warm_start(step) for step in range(0, 30_000, 97)]
    assert all(a < b for a, b in pairwise(values))
