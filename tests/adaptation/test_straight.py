"""Layers that are not called do what they do when called, to the bit."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from shiftcal import adaptation
from shiftcal.adaptation.heads import ApartBatchNorm1d, linear_bottleneck
from shiftcal.adaptation.straight import straight

EVERY = pytest.mark.parametrize("name", adaptation.names())


def rows(n=8, d=5, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), requires_grad=True)


def by(way, module, x, seed=3):
    """Outputs, gradients of everything that has one, and the state afterwards."""
    torch.manual_seed(seed)
    out = way(module, x)
    grads = torch.autograd.grad(out.square().sum(), [x, *module.parameters()], allow_unused=True)
    return out, *(one for one in grads if one is not None), *module.state_dict().values()


def called(module, x):
    return module(x)


def assert_same(module, x):
    other = copy.deepcopy(module)
    for found, expected in zip(by(straight, module, x), by(called, other, x), strict=True):
        assert torch.equal(found, expected)


@EVERY
@pytest.mark.parametrize("training", [True, False])
def test_a_trainers_layers_give_the_same_numbers(name, training):
    torch.manual_seed(0)
    trainer = adaptation.get(name)()
    for module in (trainer.bottleneck(5, 7), trainer.head(5, 3)):
        module.train(training)
        for seed in range(3):  # running statistics move on
            assert_same(module, rows(seed=seed))
        if not training:
            for n in (1, 2, 3):
                assert_same(module, rows(n))


@pytest.mark.parametrize(
    "norm",
    [
        nn.BatchNorm1d(5, momentum=None),
        nn.BatchNorm1d(5, affine=False),
        nn.BatchNorm1d(5, track_running_stats=False),
        nn.BatchNorm1d(5, eps=0.5, momentum=0.7),
        ApartBatchNorm1d(5, momentum=0.7),
        ApartBatchNorm1d(5, momentum=None),
    ],
    ids=["cumulative", "not affine", "no running", "options", "apart", "apart, cumulative"],
)
def test_normalisations_with_options_give_the_same_numbers(norm):
    module = nn.Sequential(norm, nn.ReLU())
    for seed in range(3):
        assert_same(module, rows(seed=seed))
    norm.eval()  # a normalisation that is frozen while the rest is trained
    assert_same(module, rows(seed=9))


def test_layers_that_are_not_known_are_called():
    class Twice(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    torch.manual_seed(0)
    nested = nn.Sequential(Twice(5, 4), nn.Sequential(nn.GELU(), nn.Linear(4, 3, bias=False)))
    assert_same(nested, rows())
    assert_same(Twice(5, 4), rows())
    assert torch.equal(straight(nn.Identity(), rows()), rows())


@pytest.mark.parametrize("layer", [nn.Linear(5, 5), nn.BatchNorm1d(5)], ids=["linear", "norm"])
def test_weights_are_found_by_name(layer):
    torch.nn.init.normal_(layer.bias)
    prune.remove(prune.identity(layer, "weight"), "weight")  # puts them behind the biases
    assert [*layer._parameters] == ["bias", "weight"]
    assert_same(nn.Sequential(layer), rows())


def test_half_precision_is_that_of_the_surrounding_autocast():
    module = linear_bottleneck(5, 7)
    with torch.autocast("cpu", torch.bfloat16):
        assert_same(module, rows())
        assert straight(module[0], rows()).dtype == torch.bfloat16


@pytest.mark.parametrize("place", [0, 1, 2, 3, None])
@pytest.mark.parametrize(
    "hook",
    [
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
    ],
)
def test_hooks_are_called(place, hook):
    seen = []
    module = linear_bottleneck(5, 7, dropout=0.5)
    watched = module if place is None else module[place]
    getattr(watched, hook)(lambda *given: seen.append(len(given)) and None)
    straight(module, rows()).sum().backward()
    assert len(seen) == 1


def test_hooks_of_all_modules_are_called():
    seen = []
    hook = nn.modules.module.register_module_forward_hook(lambda *given: seen.append(given[0]))
    module = linear_bottleneck(5, 7)
    try:
        straight(module, rows())
    finally:
        hook.remove()
    assert seen == [*module, module]


def test_a_layer_that_was_changed_is_called():
    module = linear_bottleneck(5, 7)
    module[2].forward = lambda x: x - 1
    assert_same(module, rows())
    assert straight(module, rows()).min() < -1


@pytest.mark.parametrize("apart", [False, True])
def test_one_row_cannot_be_normalised(apart):
    module = linear_bottleneck(5, 7, apart=apart)
    before = copy.deepcopy(module.state_dict())
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        straight(module, rows(2 if apart else 1))
    for name, value in module.state_dict().items():
        if name != "1.num_batches_tracked":  # torch counts before it looks
            assert torch.equal(value, before[name])
