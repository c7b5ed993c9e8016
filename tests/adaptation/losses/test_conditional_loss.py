"""Outer products, entropy weights and the domain loss against numpy, scikit-learn and torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from sklearn.metrics import log_loss

from shiftcal.adaptation.losses.conditional import domain_loss, entropy_weights, outer
from shiftcal.adaptation.losses.reversal import reverse


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def draw_probabilities(n, k, seed=0):
    return torch.from_numpy(scipy.special.softmax(2 * draw(n, k, seed=seed), axis=1))


def test_outer_products_are_those_of_numpy_row_by_row():
    p, f = draw_probabilities(5, 3), torch.from_numpy(draw(5, 4))
    expected = [np.outer(a, b).ravel() for a, b in zip(p.numpy(), f.numpy(), strict=True)]
    found = outer(p, f)
    assert found.shape == (5, 12)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_outer_products_pass_gradcheck():
    p, f = draw_probabilities(3, 2).requires_grad_(), torch.from_numpy(draw(3, 4))
    assert torch.autograd.gradcheck(outer, (p, f.requires_grad_()))


def test_of_sure_rows_the_outer_product_holds_the_features_in_the_place_of_the_class():
    f = torch.from_numpy(draw(3, 4))
    found = outer(torch.eye(3, dtype=torch.float64), f).view(3, 3, 4)
    for row in range(3):
        assert torch.equal(found[row, row], f[row])
    assert found.count_nonzero() == 12


def test_summed_over_the_classes_the_outer_product_is_the_features():
    p, f = draw_probabilities(6, 5), torch.from_numpy(draw(6, 4))
    np.testing.assert_allclose(outer(p, f).view(6, 5, 4).sum(1), f, rtol=1e-14)


def test_reversing_the_features_is_reversing_the_products():
    p, f = draw_probabilities(6, 5), torch.from_numpy(draw(6, 4)).requires_grad_()
    (before,) = torch.autograd.grad(outer(p, reverse(f, 0.3)).sin().sum(), f)
    (after,) = torch.autograd.grad(reverse(outer(p, f), 0.3).sin().sum(), f)
    np.testing.assert_allclose(before, after, rtol=1e-13)


def test_weights_are_those_of_scipys_entropy_with_mean_one():
    p = draw_probabilities(9, 4)
    expected = 1 + np.exp(-scipy.stats.entropy(p.numpy(), axis=1))
    np.testing.assert_allclose(entropy_weights(p), expected / expected.mean(), rtol=1e-13)


def test_a_sure_row_counts_most_and_an_even_one_least():
    p = torch.cat([torch.eye(4), torch.full((1, 4), 0.25), draw_probabilities(9, 4).float()])
    weights = entropy_weights(p)
    assert weights[0] == weights.max()
    assert weights[4] == weights.min()
    # exp(-H) is 1 for a sure row and 1/k for an even one.
    assert (weights[0] / weights[4]).item() == pytest.approx(2 / 1.25, rel=1e-6)


def test_rows_alike_weigh_one():
    np.testing.assert_allclose(entropy_weights(torch.full((5, 3), 1 / 3)), 1, rtol=1e-6)


def test_no_gradient_goes_through_the_weights():
    assert not entropy_weights(draw_probabilities(4, 3).requires_grad_()).requires_grad


def test_the_domain_loss_is_that_of_loops():
    s, t = 3 * draw(5), 3 * draw(5, seed=1)
    of_source = sum(-math.log(1 / (1 + math.exp(-z))) for z in s) / 5
    of_target = sum(-math.log(1 - 1 / (1 + math.exp(-z))) for z in t) / 5
    found = domain_loss(torch.from_numpy(s), torch.from_numpy(t)).item()
    assert found == pytest.approx((of_source + of_target) / 2, rel=1e-12)


@pytest.mark.parametrize("column", [True, False])
def test_with_weights_it_is_that_of_scikit_learn(column):
    s, t = draw(6), draw(6, seed=1)
    weights = entropy_weights(draw_probabilities(12, 3))
    z = np.concatenate([s, t])
    expected = log_loss([1] * 6 + [0] * 6, scipy.special.expit(z), sample_weight=weights.numpy())
    shape = (6, 1) if column else (6,)
    ours, theirs = (torch.from_numpy(x).view(shape) for x in (s, t))
    assert domain_loss(ours, theirs, weights).item() == pytest.approx(expected, rel=1e-12)
    column_of_weights = domain_loss(ours, theirs, weights.unsqueeze(1)).item()
    assert column_of_weights == pytest.approx(expected, rel=1e-12)


def test_it_is_the_cross_entropy_of_a_sigmoid_as_the_reference_has_it():
    s, t = (torch.from_numpy(draw(6, 1, seed=seed)) for seed in (0, 1))
    weights = entropy_weights(draw_probabilities(12, 3)).unsqueeze(1)
    probability = torch.sigmoid(torch.cat([s, t]))
    domain = torch.cat([torch.ones(6, 1), torch.zeros(6, 1)]).double()
    expected = torch.nn.functional.binary_cross_entropy(probability, domain, weights)
    assert domain_loss(s, t, weights).item() == pytest.approx(expected.item(), rel=1e-12)


def test_the_domain_loss_passes_gradcheck():
    s, t = (torch.from_numpy(draw(4, 1, seed=seed)).requires_grad_() for seed in (0, 1))
    weights = entropy_weights(draw_probabilities(8, 3))
    assert torch.autograd.gradcheck(domain_loss, (s, t))
    assert torch.autograd.gradcheck(lambda a, b: domain_loss(a, b, weights), (s, t))


def test_a_discriminator_that_knows_nothing_loses_log_two():
    assert domain_loss(torch.zeros(4, 1), torch.zeros(4, 1)).item() == pytest.approx(math.log(2))


def test_exchanged_domains_and_turned_signs_are_the_same():
    s, t = (torch.from_numpy(draw(4, 1, seed=seed)) for seed in (0, 1))
    assert domain_loss(s, t).item() == pytest.approx(domain_loss(-t, -s).item(), rel=1e-14)


def test_a_sure_discriminator_overflows_nowhere():
    s = torch.tensor([[1e4], [-1e4]], requires_grad=True)
    t = torch.tensor([[-1e4], [1e4]], requires_grad=True)
    loss = domain_loss(s, t)
    assert loss.item() == pytest.approx(5e3)
    loss.backward()
    np.testing.assert_allclose(s.grad, [[0.0], [-0.25]])
    np.testing.assert_allclose(t.grad, [[0.0], [0.25]])


def test_sure_and_impossible_rows_weigh_a_finite_number():
    p = torch.tensor([[1.0, 0.0, 0.0], [1e-45, 1.0, 0.0]])
    assert torch.isfinite(entropy_weights(p)).all()
