"""The first steps of every recipe."""

from __future__ import annotations

import pytest
import torch

from shiftcal import adaptation
from shiftcal.adaptation.network import make_objective

# What is trained along, narrow enough for tests.
NARROW = {"cdan": {"hidden": 64}, "mdd": {"width": 64}}


@pytest.mark.parametrize("name", adaptation.names())
@pytest.mark.parametrize("recipe", [None, "office-home", "visda", "frozen", "digits"])
def test_losses_stay_finite_in_the_first_fifty_steps(name, recipe):
    trainer, settings = adaptation.get(name).prepared(recipe, NARROW.get(name))
    torch.manual_seed(0)
    n, d, k = settings.batch_size, 64, 12
    made = make_objective(trainer, None, d, k, width=min(settings.bottleneck, 128)).train()
    optimiser = torch.optim.SGD(made.parameters(), lr=settings.lr, momentum=settings.momentum)
    centres = torch.randn(k, d)
    first = None
    for step in range(50):
        labels = torch.randint(k, (n,))
        source = (centres[labels] + torch.randn(n, d)).relu()
        target = (0.5 * centres[torch.randint(k, (n,))] + torch.randn(n, d) + 0.5).relu()
        losses = made(source, labels, target, step)
        assert all(torch.isfinite(each) for each in losses), (step, losses)
        first = losses.classification.item() if first is None else first
        optimiser.zero_grad()
        losses.total.backward()
        optimiser.step()
    assert all(torch.isfinite(p).all() for p in made.parameters())
    assert losses.classification.item() < first


@pytest.mark.parametrize("name", adaptation.names())
def test_huge_features_give_finite_losses_and_gradients(name):
    trainer, _ = adaptation.get(name).prepared(None, NARROW.get(name))
    torch.manual_seed(0)
    made = make_objective(trainer, None, 16, 5, width=8).train()
    source, target = 1e4 * torch.randn(8, 16), 1e4 * torch.randn(8, 16) + 1e4
    losses = made(source, torch.randint(5, (8,)), target, 700)
    losses.total.backward()
    assert torch.isfinite(losses.total)
    assert all(torch.isfinite(p.grad).all() for p in made.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", adaptation.names())
def test_identical_images_everywhere_give_finite_losses_and_gradients(name):
    trainer, _ = adaptation.get(name).prepared(None, NARROW.get(name))
    torch.manual_seed(0)
    made = make_objective(trainer, None, 16, 5, width=8).train()
    same = torch.ones(8, 16)
    losses = made(same, torch.zeros(8, dtype=torch.long), same, 700)
    losses.total.backward()
    assert torch.isfinite(losses.total)
    assert all(torch.isfinite(p.grad).all() for p in made.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", adaptation.names())
def test_mixed_precision_gives_nearly_the_same_losses(name):
    trainer, _ = adaptation.get(name).prepared(None, NARROW.get(name))
    torch.manual_seed(0)
    made = make_objective(trainer, None, 16, 5, width=8).train()
    source, target, labels = torch.randn(32, 16), torch.randn(32, 16) + 1, torch.randint(5, (32,))
    torch.manual_seed(1)
    whole = made(source, labels, target, 700)
    torch.manual_seed(1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = made(source, labels, target, 700)
    half.total.backward()
    # bfloat16 has 8 bits: features and logits are off by 0.4%, and the losses by not much more.
    torch.testing.assert_close(half, whole, rtol=0.03, atol=0.03)
    assert all(p.grad.dtype == torch.float32 for p in made.parameters() if p.grad is not None)
