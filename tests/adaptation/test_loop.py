"""The training loop: its result, its checkpoint, and what it rejects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from shiftcal.adaptation import loop
from shiftcal.adaptation.loop import CHECKPOINT, ArrayFeed, seeded, train
from shiftcal.adaptation.network import Objective, linear_bottleneck
from shiftcal.adaptation.trainers import Settings, Trainer
from shiftcal.errors import FileError, FitError
from shiftcal.models.pytorch import torch_threads

IDENTITY = {"data": "drawn", "trainer": {"name": "moments"}}


@final
@dataclass(frozen=True, kw_only=True)
class Moments(Trainer):
    """Means of the features brought together, seen by a layer that is trained along.

    In step 36 the loss of a ``broken`` one is NaN.
    """

    label = "Moments"
    dropout: float = 0.5
    broken: bool = False

    def bottleneck(self, n_in, width):
        return linear_bottleneck(n_in, width, dropout=self.dropout)

    def extra(self, width, n_classes):
        return nn.Linear(width, 2)

    def transfer(self, source, target, extra, step):
        loss = (extra(source.features).mean(0) - extra(target.features).mean(0)).square().sum()
        return loss * float("nan") if self.broken and step == 36 else loss


@pytest.fixture(autouse=True)
def one_thread():
    with torch_threads(1):
        yield


def data(kind):
    """Source, labels and target: features, or small images."""
    rng = np.random.default_rng(5)
    shape = (7,) if kind == "features" else (3, 8, 6)
    labels = rng.integers(0, 3, 40)
    source = rng.standard_normal((40, *shape), np.float32)
    source.reshape(40, -1)[np.arange(40), labels] += 2
    return source, labels, rng.standard_normal((30, *shape), np.float32) + 0.5


def network(kind, trainer):
    with seeded(3):
        if kind == "features":
            return Objective(trainer, None, 7, 3, width=5)
        backbone = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        return Objective(trainer, backbone, 4, 3, width=5)


class Stopping(ArrayFeed):
    """Stops with an error before a batch."""

    stop = None

    def batches(self, first, last):
        for step, batch in enumerate(super().batches(first, last), first):
            if step == self.stop:
                raise RuntimeError("stop")
            yield batch


def training(folder, *, kind="features", trainer=None, stop=None, changes=None, **options):
    """Train; the objective, the rows of its history, and at which step it resumed."""
    settings = Settings(**{"iterations": 60, "batch_size": 8, "lr": 0.05, **(changes or {})})
    objective = network(kind, trainer or Moments())
    feed = Stopping(*data(kind), batch_size=8, seed=3)
    feed.stop = stop
    wanted = {"seed": 3, "device": "cpu", "checkpoint_every": 8, "identity": IDENTITY, **options}
    return objective, *train(objective, feed, settings, folder, **wanted)


def stopped(folder, stop=30, **options):
    with pytest.raises(RuntimeError, match="stop"):
        training(folder, stop=stop, **options)
    return folder


def same(one, two):
    """Whether two networks are equal to the last bit."""
    one, two = one.state_dict(), two.state_dict()
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("kind", ["features", "images"])
def test_weights_are_those_of_a_loop_written_by_hand(tmp_path, kind):
    trainer = Moments(dropout=0.0, trade_off=0.3)
    ours, rows, resumed_at = training(tmp_path, kind=kind, trainer=trainer)
    assert resumed_at == 0
    assert not any(module.training for module in ours.modules())
    theirs = network(kind, trainer)
    named = list(theirs.named_parameters())
    backbone = [p for name, p in named if "backbone" in name]
    added = [p for name, p in named if "backbone" not in name]
    groups = [{"params": added, "lr": 1.0}, {"params": backbone, "lr": 0.1}]
    sgd = torch.optim.SGD(
        groups[: 1 + bool(backbone)], momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    falling = torch.optim.lr_scheduler.LambdaLR(sgd, lambda t: 0.05 * (1 + 3e-4 * t) ** -0.75)
    means = []
    for batch in ArrayFeed(*data(kind), batch_size=8, seed=3).batches(0, 60):
        sgd.zero_grad()
        both = theirs.classifier.both(torch.cat([batch.source, batch.target]))
        loss = functional.cross_entropy(both.logits[:8], batch.labels)
        means.append(loss.item())
        seen = theirs.extra(both.features)
        loss = loss + 0.3 * (seen[:8].mean(0) - seen[8:].mean(0)).square().sum()
        loss.backward()
        sgd.step()
        falling.step()
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, atol=2e-5, rtol=2e-5)
    assert [row.step for row in rows] == list(range(1, 61))
    np.testing.assert_allclose([row.classification for row in rows], means, rtol=1e-3, atol=1e-5)


def test_a_seed_is_a_result_and_random_numbers_of_the_caller_are_left_alone(tmp_path):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, *_ = training(tmp_path / "one")
    assert torch.equal(torch.get_rng_state(), before)
    two, *_ = training(tmp_path / "two", checkpoint_every=7)
    other, *_ = training(tmp_path / "other", seed=4)  # of dropout alone
    assert same(one, two)
    assert not same(one, other)


@pytest.mark.parametrize(
    "options", [{}, {"kind": "images", "changes": {"backbone_momentum": 0.0}}], ids=str
)
def test_an_interrupted_training_resumes_to_the_same_bytes(tmp_path, options):
    # Rows are due every second step, checkpoints every seventh: one falls between two rows.
    options = {**options, "checkpoint_every": 7}
    options["changes"] = {"iterations": 150, **options.get("changes", {})}
    whole, rows, _ = training(tmp_path / "whole", **options)
    stopped(tmp_path / "parts", **options)
    parts, history, resumed_at = training(tmp_path / "parts", **options)
    assert resumed_at == 28
    assert same(whole, parts)
    assert history == rows


def test_a_checkpoint_is_due_by_time_too(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_SECONDS", 1e-9)
    stopped(tmp_path, 25, checkpoint_every=1000)
    assert training(tmp_path, checkpoint_every=1000)[2] == 25


def test_a_checkpoint_of_another_training_raises(tmp_path):
    before = (stopped(tmp_path) / CHECKPOINT).read_bytes()
    with pytest.raises(FileError, match="holds another run: data, trainer differ"):
        training(tmp_path, identity={"data": "other"})
    assert (tmp_path / CHECKPOINT).read_bytes() == before


@pytest.mark.parametrize(
    "content", ["cut", b"\x80\x04 nothing", b""], ids=["cut", "other", "empty"]
)
def test_a_damaged_checkpoint_raises_with_its_name(tmp_path, content):
    file = stopped(tmp_path) / CHECKPOINT
    file.write_bytes(file.read_bytes()[:-9] if content == "cut" else content)
    with pytest.raises(FileError, match=CHECKPOINT):
        training(tmp_path)


def test_a_diverging_training_names_the_step_and_keeps_the_checkpoint(tmp_path):
    message = r"diverged: in step 37 of 60 the loss is nan, at the learning rate 0\.04\d+\. Train"
    with pytest.raises(FitError, match=message):
        training(tmp_path, trainer=Moments(broken=True))
    assert torch.load(tmp_path / CHECKPOINT)["step"] == 32
