"""The descent, against torch's own."""

from __future__ import annotations

import pytest
import torch
from training_process import Moments, network, settings

from shiftcal.adaptation.training import optimiser as module
from shiftcal.adaptation.training.optimiser import Optimiser

CPU = torch.device("cpu")


@pytest.fixture(params=["fused", "plain"])
def kernel(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(module, "_has_fused", lambda _: False)
    return request.param


def drawn_gradients(objective, step):
    generator = torch.Generator().manual_seed(step)
    for parameter in objective.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def theirs(objective, given):
    """As the reference library does it: groups of rates 0.1 and 1, a factor that has the rate."""
    named = list(objective.named_parameters())
    slow = given.momentum if given.backbone_momentum is None else given.backbone_momentum
    backbone = {
        "params": [p for name, p in named if name.startswith("classifier.backbone.")],
        "lr": given.backbone_lr,
        "momentum": slow,
        "nesterov": given.nesterov and slow > 0,
    }
    added = {
        "params": [p for name, p in named if not name.startswith("classifier.backbone.")],
        "lr": 1.0,
        "momentum": given.momentum,
        "nesterov": given.nesterov and given.momentum > 0,
    }
    sgd = torch.optim.SGD([backbone, added], weight_decay=given.weight_decay)
    factor = lambda t: given.lr * (1 + given.lr_gamma * t) ** -given.lr_power  # noqa: E731
    return sgd, torch.optim.lr_scheduler.LambdaLR(sgd, factor)


@pytest.mark.parametrize(
    "changes",
    [
        {"lr": 0.01, "lr_gamma": 1e-3, "weight_decay": 1e-3},
        {"lr": 0.05, "lr_gamma": 0.5, "nesterov": False},
        {"lr": 0.001, "lr_gamma": 0.0, "backbone_momentum": 0.0, "backbone_lr": 1.0},
        {"momentum": 0.0, "weight_decay": 0.0},
    ],
    ids=["cdan", "falling fast", "safn", "no momentum"],
)
def test_weights_move_as_torch_moves_them(kernel, changes):
    given = settings(**changes)
    one, two = network("images", Moments()), network("images", Moments())
    ours = Optimiser(one, given, CPU)
    sgd, falling = theirs(two, given)
    for step in range(25):
        for objective in (one, two):
            drawn_gradients(objective, step)
        ours.step(step)
        sgd.step()
        falling.step()
    begun = dict(network("images", Moments()).named_parameters())
    for (name, p), q in zip(one.named_parameters(), two.parameters(), strict=True):
        # The same operations in another order: float32 rounding.
        torch.testing.assert_close(p, q, atol=1e-6, rtol=1e-5)
        assert not torch.equal(p, begun[name])


@pytest.mark.parametrize("step", [0, 1, 500, 10_000])
def test_the_rate_is_that_of_the_formula_however_often_it_was_set(kernel, step):
    given = settings(lr=0.01, lr_gamma=1e-3, momentum=0.0, weight_decay=0.0)
    objective = network("images", Moments())
    ours = Optimiser(objective, given, CPU)
    for before in (3, 7, step):
        for p in objective.parameters():
            p.data.zero_()
            p.grad = torch.ones_like(p)
        ours.step(before)
    rate = 0.01 * (1 + 1e-3 * step) ** -0.75
    for name, p in objective.named_parameters():
        factor = 0.1 if "backbone" in name else 1.0
        torch.testing.assert_close(p.data, torch.full_like(p, -rate * factor))


def test_what_has_no_gradient_stays(kernel):
    given = settings()
    objective = network("features", Moments())
    before = {name: p.detach().clone() for name, p in objective.named_parameters()}
    ours = Optimiser(objective, given, CPU)
    drawn_gradients(objective, 1)
    objective.classifier.head.weight.grad = None
    ours.step(0)
    for name, p in objective.named_parameters():
        assert torch.equal(p, before[name]) == (name == "classifier.head.weight")
    assert not ours.momentum()["classifier.head.weight"].any()
    for p in objective.parameters():
        p.grad = None
    ours.step(1)


def test_parameters_that_want_no_gradient_are_left_out():
    objective = network("images", Moments())
    objective.classifier.backbone.requires_grad_(False)
    ours = Optimiser(objective, settings(), CPU)
    assert len(ours.param_groups) == 1
    assert not any("backbone" in name for name in ours.momentum())


def test_momentum_is_by_name_and_only_where_there_is_some():
    objective = network("images", Moments())
    both = Optimiser(objective, settings(), CPU).momentum()
    assert both.keys() == dict(objective.named_parameters()).keys()
    some = Optimiser(objective, settings(backbone_momentum=0.0), CPU).momentum()
    assert some.keys() == {name for name in both if "backbone" not in name}


def test_torch_has_the_kernel_here():
    assert module._has_fused(CPU)
