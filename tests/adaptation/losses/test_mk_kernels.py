"""Gaussian kernels against loops over pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel

from shiftcal.adaptation.losses.kernels import (
    ALPHAS,
    gaussian,
    multi_gaussian,
    squared_distances,
    weighted_pull,
)


def draw(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def test_the_five_widths_are_powers_of_two():
    assert ALPHAS == (0.125, 0.25, 0.5, 1.0, 2.0)


def test_a_gaussian_has_its_textbook_values():
    found = gaussian(torch.tensor([0.0, 2.0, 8.0], dtype=torch.float64), 4.0)
    np.testing.assert_allclose(found, np.exp([0.0, -0.25, -1.0]), rtol=1e-15)


def test_gaussians_of_tensors_pass_gradcheck():
    sq_dist = draw(3, 3).square().requires_grad_()
    variance = (1 + draw(3, seed=1).square()).requires_grad_()
    assert torch.autograd.gradcheck(gaussian, (sq_dist, variance))


@pytest.mark.parametrize("alphas", [ALPHAS, (1.0,), (0.3, 5.0)])
def test_the_sum_of_kernels_is_that_of_loops_over_pairs(alphas):
    x = draw(7, 3).numpy()
    mean = np.mean([((a - b) ** 2).sum() for a in x for b in x])
    expected = [
        [sum(np.exp(-((a - b) ** 2).sum() / (2 * alpha * mean)) for alpha in alphas) for b in x]
        for a in x
    ]
    found = multi_gaussian(torch.from_numpy(x), alphas)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_sum_of_kernels_is_that_of_scikit_learn():
    x = draw(20, 4).numpy()
    mean = 2 * x.var(axis=0).sum()
    expected = sum(rbf_kernel(x, gamma=1 / (2 * alpha * mean)) for alpha in ALPHAS)
    np.testing.assert_allclose(multi_gaussian(torch.from_numpy(x)), expected, rtol=1e-12)


def test_a_row_with_itself_has_every_kernel_at_its_top():
    assert torch.equal(multi_gaussian(draw(6, 3)).diagonal(), torch.full((6,), 5.0).double())


def test_no_gradient_goes_through_the_widths():
    x = draw(5, 3).requires_grad_()
    (found,) = torch.autograd.grad(multi_gaussian(x).sin().sum(), x)
    mean = squared_distances(x).detach().mean()
    frozen = sum(gaussian(squared_distances(x), alpha * mean) for alpha in ALPHAS)
    (expected,) = torch.autograd.grad(frozen.sin().sum(), x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_squared_distances_pass_gradcheck():
    assert torch.autograd.gradcheck(squared_distances, draw(4, 3).requires_grad_())


def test_far_from_the_origin_the_kernels_keep_their_digits():
    x = draw(16, 8)
    far = (x + 10_000).float()
    # At 10,000 float32 numbers lie 1e-3 apart, so the rows themselves are that far off.
    np.testing.assert_allclose(multi_gaussian(far), multi_gaussian(x), atol=5e-3)


def test_equal_rows_have_all_kernels_at_their_top_and_no_gradient():
    x = torch.full((6, 4), 3.0, requires_grad=True)
    kernels = multi_gaussian(x)
    assert torch.equal(kernels, torch.full((6, 6), 5.0))
    kernels.sum().backward()
    assert torch.equal(x.grad, torch.zeros(6, 4))


def test_the_pull_of_weighted_distances_is_their_gradient():
    x = draw(6, 3).requires_grad_()
    weights = draw(6, 6, seed=1)
    weights = weights + weights.t()
    (expected,) = torch.autograd.grad((weights * squared_distances(x)).sum(), x)
    np.testing.assert_allclose(weighted_pull(x.detach(), weights), expected, rtol=1e-12)
