"""The network and its objective: what goes through, together or apart, and what is added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from shiftcal import adaptation
from shiftcal.adaptation.network import (
    Classifier,
    NormPreservingDropout,
    Objective,
)
from shiftcal.adaptation.run import run_heads
from shiftcal.adaptation.trainers import Trainer


@dataclass(frozen=True, kw_only=True)
class Spy(Trainer):
    """Keeps what it was given; its transfer loss is the mean of the target's features."""

    label: ClassVar[str] = "spy"
    seen: ClassVar[list] = []

    def transfer(self, source, target, extra, step):
        self.seen.append((source, target, extra, step))
        return target.features.mean()


@dataclass(frozen=True, kw_only=True)
class Apart(Spy):
    joint: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class Blind(Spy):
    adapts: ClassVar[bool] = False


@pytest.fixture(autouse=True)
def nothing_seen():
    Spy.seen.clear()


def batch(n=8, d=5, k=3, seed=0):
    rng = torch.Generator().manual_seed(seed)
    source = torch.randn(n, d, generator=rng)
    target = torch.randn(n, d, generator=rng) + 2
    return source, torch.randint(k, (n,), generator=rng), target


def objective(trainer, *, backbone=None, width=4, d=5, k=3, seed=0):
    torch.manual_seed(seed)
    return Objective(trainer, backbone, d, k, width=width)


def test_the_total_is_the_cross_entropy_plus_the_weighted_transfer_loss():
    source, labels, target = batch()
    made = objective(Spy(trade_off=0.25))
    losses = made(source, labels, target, 7)
    ours, theirs, extra, step = Spy.seen[0]
    assert step == 7
    assert extra is None
    expected = -ours.logits.log_softmax(1)[torch.arange(8), labels].mean()
    torch.testing.assert_close(losses.classification, expected)
    torch.testing.assert_close(losses.transfer, theirs.features.mean())
    torch.testing.assert_close(losses.total, expected + 0.25 * theirs.features.mean())


def test_without_a_bottleneck_the_head_takes_the_backbones_features():
    made = Classifier(None, 5, 3, trainer=Spy(), width=0).eval()
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(3))
    assert made.width == 5
    assert torch.equal(made.both(x).features, x)
    assert made(x).shape == (4, 3)


def normalised(x, mean, variance):
    return (x - mean) / (variance + 1e-5).sqrt()


@pytest.mark.parametrize("trainer", [Spy(), Apart()], ids=["joint", "apart"])
def test_batch_statistics_are_common_only_if_the_trainer_says_so(trainer):
    source, labels, target = batch()
    made = objective(trainer, backbone=nn.BatchNorm1d(5))
    made(source, labels, target, 0)
    ours, theirs, *_ = Spy.seen[0]
    a, b = source, target
    for layer in (None, made.classifier.bottleneck[0]):  # the backbone's and the bottleneck's
        a, b = (a, b) if layer is None else (layer(a), layer(b))
        together = torch.cat([a, b])
        of_a, of_b = (together, together) if trainer.joint else (a, b)
        a = normalised(a, of_a.mean(0), of_a.var(0, correction=0))
        b = normalised(b, of_b.mean(0), of_b.var(0, correction=0))
    torch.testing.assert_close(ours.features, a.relu(), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(theirs.features, b.relu(), atol=1e-5, rtol=1e-4)


def test_a_trainer_that_does_not_adapt_needs_no_target():
    source, labels, _ = batch()
    losses = objective(Blind())(source, labels, None, 0)
    assert Spy.seen == []
    assert losses.transfer.item() == 0
    assert torch.equal(losses.total, losses.classification)


@pytest.mark.parametrize("name", adaptation.names())
def test_heads_take_rows_one_at_a_time_outside_of_training(name):
    made = objective(adaptation.get(name)()).classifier.eval()
    source, _, target = batch()
    x = torch.cat([source, target]).numpy()
    together = run_heads(made, x)
    for i in (0, 15):
        alone = run_heads(made, x[i : i + 1])
        np.testing.assert_allclose(alone.logits, together.logits[i : i + 1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_norm_preserving_dropout_keeps_the_expected_squared_norm(rate):
    torch.manual_seed(0)
    x = torch.randn(400, 500)
    kept = NormPreservingDropout(rate).train()(x)
    # The ratio's deviation is below sqrt(3 rate / (1 - rate) / 200,000), 0.8% at a rate of 0.8.
    assert float((kept**2).sum() / (x**2).sum()) == pytest.approx(1.0, abs=0.03)
    there = kept != 0
    assert float(there.float().mean()) == pytest.approx(1 - rate, abs=0.01)
    torch.testing.assert_close(kept[there], x[there] / (1 - rate) ** 0.5)
    assert torch.equal(NormPreservingDropout(rate).eval()(x), x)
