"""The discriminator in one piece against its layers, one after the other, by torch's autograd."""

from __future__ import annotations

import copy

import pytest
import torch

from shiftcal.adaptation.heads import discriminator
from shiftcal.adaptation.losses.adversary import adversarial_loss, takes
from shiftcal.adaptation.losses.conditional import domain_loss, outer

N, D, K, HIDDEN = 10, 6, 4, 9
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float", "double"])


def drawn(dtype=torch.float64, seed=0):
    """A discriminator that has been used, probabilities, features, weights of the rows."""
    torch.manual_seed(seed)
    made = discriminator(K * D, HIDDEN).to(dtype).train()
    for layer in (made[1], made[4]):
        torch.nn.init.normal_(layer.weight, 1.0, 0.5)
        torch.nn.init.normal_(layer.bias)
        layer.running_mean.normal_()
        layer.running_var.uniform_(0.5, 2)
    made[1].eps, made[4].eps, made[4].momentum = 1e-3, 0.2, 0.6
    p = torch.randn(N, K, dtype=dtype).softmax(1)
    f = (3 * torch.randn(N, D, dtype=dtype) + 1).requires_grad_()
    weights = torch.rand(N, dtype=dtype) + 0.5
    return made, p, f, weights / weights.mean()


def by_layers(made, p, f, weights):
    return domain_loss(*made(outer(p, f)).split(N // 2), weights)


@DTYPES
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_value_gradients_and_running_statistics_are_those_of_the_layers(dtype, weighted, factor):
    made, p, f, weights = drawn(dtype)
    if not weighted:
        weights = None
    layers = copy.deepcopy(made)
    assert takes(made, p, f)
    loss = adversarial_loss(made, p, f, weights, reversal=0.7)
    expected = by_layers(layers, p, f, weights)
    torch.testing.assert_close(loss, expected)
    found = torch.autograd.grad(factor * loss, [f, *made.parameters()])
    wanted = torch.autograd.grad(factor * expected, [f, *layers.parameters()])
    torch.testing.assert_close(found[0], -0.7 * wanted[0])
    for (name, _), one, other in zip(made.named_parameters(), found[1:], wanted[1:], strict=True):
        torch.testing.assert_close(one, other, msg=lambda text, name=name: f"{name}: {text}")
    for name, value in layers.state_dict().items():
        torch.testing.assert_close(made.state_dict()[name], value)


def test_a_graph_that_is_kept_gives_the_same_gradients_again():
    made, p, f, weights = drawn()
    loss = adversarial_loss(made, p, f, weights, reversal=1.0)
    given = [f, *made.parameters()]
    first = torch.autograd.grad(loss, given, retain_graph=True)
    again = torch.autograd.grad(loss, given)
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("where", ["features", "first", "second", "last"])
def test_what_is_not_finite_makes_the_loss_so(value, where):
    made, p, f, _ = drawn()
    place = {"first": 0, "second": 3, "last": 6}
    with torch.no_grad():
        if where == "features":
            f[2, 1] = value
        else:
            made[place[where]].weight[0, 1] = value
    assert not torch.isfinite(adversarial_loss(made, p, f, None, reversal=1.0))


def test_features_far_from_the_origin_keep_their_digits():
    made, p, f, _ = drawn(torch.float32)
    far = (f + 3000).detach()
    wide = copy.deepcopy(made).double()
    loss = adversarial_loss(made, torch.full_like(p, 1 / K), far, None, reversal=1.0)
    expected = by_layers(wide, torch.full_like(p, 1 / K).double(), far.double(), None)
    # The first layer's own rounding, of numbers around 1000, is about 1e-4.
    assert loss.item() == pytest.approx(expected.item(), abs=2e-3)


def test_it_is_had_only_where_it_is_the_same():
    made, p, f, _ = drawn()
    assert takes(made, p, f)
    assert not takes(made, p.float(), f)
    assert not takes(made.half(), p.half(), f.half())
    made = drawn()[0]
    assert not takes(made[:-1], p, f)
    assert not takes(copy.deepcopy(made).eval(), p, f)
    assert not takes(made, p.to("meta"), f.to("meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert not takes(made, p, f)


def test_gradients_that_are_added_up_do_not_change_the_kept_ones():
    made, p, f, weights = drawn()
    loss = adversarial_loss(made, p, f, weights, reversal=1.0)
    given = [f, *made.parameters()]
    loss.backward(retain_graph=True)
    first = [one.grad.clone() for one in given]
    for times in (2, 3):
        loss.backward(retain_graph=True)
        for one, alone in zip(given, first, strict=True):
            torch.testing.assert_close(one.grad, times * alone)
