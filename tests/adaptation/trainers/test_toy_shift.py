"""Three Gaussian classes, and a target where two of four inputs are shifted: each method helps.

Both pairs of inputs tell the classes apart, so a network that sees the source alone relies on the
pair that moves. The control has the same passes and batch statistics, and no transfer loss.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from shiftcal import adaptation
from shiftcal.adaptation.feeds.arrays import ArrayFeed
from shiftcal.adaptation.network import make_objective
from shiftcal.adaptation.training.loop import Course, train
from shiftcal.adaptation.training.randomness import seeded

SEEDS = (0, 1)
CHANGES = {"cdan": {"hidden": 32, "warm_up": 20}, "mdd": {"width": 32, "warm_up": 100}}


def domain(rng, shift):
    labels = rng.integers(3, size=1000)
    angle = 2 * np.pi * labels / 3
    centre = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inputs = np.hstack([1.5 * centre, 2 * centre + shift]) + 0.6 * rng.standard_normal((1000, 4))
    return torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels)


@cache
def accuracies(name, seed, trade_off=None):
    """On source and target, after 200 steps."""
    rng = np.random.default_rng(seed)
    source, labels = domain(rng, 0.0)
    target, truth = domain(rng, np.array([2.5, 1.0]))
    changes = CHANGES.get(name, {}) | ({} if trade_off is None else {"trade_off": trade_off})
    trainer, settings = adaptation.get(name).prepared(None, changes)
    torch.manual_seed(seed)
    backbone = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.ReLU())
    made = make_objective(trainer, backbone, 32, 3, width=32).train()
    optimiser = torch.optim.SGD(
        made.parameters(), 0.01, momentum=0.9, weight_decay=settings.weight_decay, nesterov=True
    )
    for step in range(200):
        ours, theirs = torch.randint(1000, (2, 32))
        losses = made(source[ours], labels[ours], target[theirs], step)
        optimiser.zero_grad()
        losses.total.backward()
        optimiser.step()
    network = made.classifier.eval()
    with torch.no_grad():
        right = [(network(source).argmax(1) == labels), (network(target).argmax(1) == truth)]
    return [each.float().mean().item() for each in right]


def through_the_loop(name, folder):
    """On source and target, of heads on these inputs: the recipe as it is shipped."""
    rng = np.random.default_rng(0)
    source, labels = domain(rng, 0.0)
    target, truth = domain(rng, np.array([2.5, 1.0]))
    trainer, settings = adaptation.get(name).prepared("frozen", {})
    with seeded(0):
        made = make_objective(trainer, None, 4, 3, width=settings.bottleneck)
    seen = target if trainer.adapts else None
    feed = ArrayFeed(source, labels, seen, batch_size=settings.batch_size, seed=0)
    train(made, feed, settings, folder, Course(device="cpu"), identity={})
    with torch.no_grad():
        right = [
            (made.classifier(x).argmax(1) == y) for x, y in ((source, labels), (target, truth))
        ]
    return [each.float().mean().item() for each in right]


def mean_of(name, **options):
    return np.mean([accuracies(name, seed, **options) for seed in SEEDS], axis=0)


def test_the_shift_hurts_a_network_that_sees_the_source_alone():
    on_source, on_target = mean_of("source-only")
    assert on_source > 0.99
    assert on_target < 0.85


# Measured: source only 0.76, controls 0.74 to 0.95, trained 0.97 to 0.99, each by 0.02 or more
# above its control.
@pytest.mark.parametrize("name", [n for n in adaptation.names() if n != "source-only"])
def test_a_method_beats_source_only_and_its_own_control(name):
    on_source, on_target = mean_of(name)
    assert on_source > 0.97
    assert on_target > 0.95
    assert on_target > mean_of("source-only")[1] + 0.1
    assert on_target > mean_of(name, trade_off=0.0)[1] + 0.01


# Measured: source only 0.79, the others 0.87 (cdan), 0.92 (dan), 0.98 and more.
@pytest.mark.slow
def test_the_recipe_for_frozen_features_helps_in_the_loop_that_is_shipped(tmp_path):
    reached = {name: through_the_loop(name, tmp_path / name) for name in adaptation.names()}
    baseline = reached.pop("source-only")
    assert baseline[0] > 0.99
    assert baseline[1] < 0.85
    for name, (on_source, on_target) in reached.items():
        assert on_source > 0.97, name
        assert on_target > baseline[1] + 0.04, name
    best = {name for name, (_, on_target) in reached.items() if on_target > 0.95}
    assert best >= {"jan", "mcc", "mdd", "safn"}


def test_cdan_with_entropy_weights_helps_too(monkeypatch):
    monkeypatch.setitem(CHANGES, "cdan", {**CHANGES["cdan"], "entropy": True})
    accuracies.cache_clear()
    assert mean_of("cdan")[1] > 0.95
    accuracies.cache_clear()
