"""The training loop: its result, its checkpoint, and what it rejects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import final

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

from shiftcal.adaptation import loop
from shiftcal.adaptation.feeds import ArrayFeed
from shiftcal.adaptation.loop import read_history, seeded, train
from shiftcal.adaptation.network import linear_bottleneck, make_objective
from shiftcal.adaptation.trainers import Settings, Trainer
from shiftcal.errors import FileError, FitError
from shiftcal.models.pytorch import torch_threads

CHECKPOINT = "checkpoint.safetensors"
IDENTITY = {"data": "drawn", "trainer": {"name": "moments"}}


@final
@dataclass(frozen=True, kw_only=True)
class Moments(Trainer):
    """Means of the features brought together, seen by a layer that is trained along.

    From step 36 on the loss is NaN (``broken="loss"``) or a weight infinite (``"weights"``).
    """

    label = "Moments"
    dropout: float = 0.5
    broken: str = ""

    def bottleneck(self, n_in, width):
        return linear_bottleneck(n_in, width, dropout=self.dropout)

    def extra(self, width, n_classes):
        return nn.Linear(width, 2)

    def transfer(self, source, target, extra, step):
        loss = (extra(source.features).mean(0) - extra(target.features).mean(0)).square().sum()
        if self.broken == "weights" and step == 39:
            extra.bias.data.fill_(float("inf"))
        return loss * float("nan") if self.broken == "loss" and step == 36 else loss


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
            return make_objective(trainer, None, 7, 3, width=5)
        backbone = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        return make_objective(trainer, backbone, 4, 3, width=5)


class Stopping(ArrayFeed):
    """Stops with an error before a batch."""

    stop = None

    def batches(self, first, last):
        for step, batch in enumerate(super().batches(first, last), first):
            if step == self.stop:
                raise RuntimeError("stop")
            yield batch


def training(folder, *, kind="features", trainer=None, stop=None, changes=None, **options):
    """Train; the objective and what was done."""
    settings = Settings(**{"iterations": 60, "batch_size": 8, "lr": 0.05, **(changes or {})})
    objective = network(kind, trainer or Moments())
    feed = Stopping(*data(kind), batch_size=8, seed=3)
    feed.stop = stop
    wanted = {"seed": 3, "device": "cpu", "checkpoint_every": 8, "identity": IDENTITY, **options}
    done, rows = train(objective, feed, settings, folder, **wanted)
    loop.write_history(folder, rows)
    return objective, done


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
    ours, done = training(tmp_path, kind=kind, trainer=trainer)
    assert (done.steps, done.selected_step, done.resumed_at) == (60, 60, 0)
    assert done.images_per_second > 0
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
    rows = read_history(tmp_path)
    assert [row.step for row in rows] == list(range(1, 61))
    np.testing.assert_allclose([row.classification for row in rows], means, rtol=1e-3, atol=1e-5)


def test_a_seed_is_a_result_and_random_numbers_of_the_caller_are_left_alone(tmp_path):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, _ = training(tmp_path / "one")
    assert torch.equal(torch.get_rng_state(), before)
    two, _ = training(tmp_path / "two", checkpoint_every=7)
    other, _ = training(tmp_path / "other", seed=4)  # of dropout alone
    assert same(one, two)
    assert not same(one, other)


def test_the_best_on_the_source_is_selected_and_the_latest_of_equals(tmp_path):
    # After 3, 6 ... 48 and 50 steps: the best are those of 30 and 33.
    accuracies = [0.5] * 9 + [0.9, 0.9] + [0.4] * 6
    left = iter(accuracies)

    def validate(classifier):
        assert not classifier.training
        assert not torch.is_grad_enabled()
        return next(left)

    options = {"validate": validate, "changes": {"iterations": 50}}
    ours, done = training(tmp_path / "ours", **options)
    assert next(left, None) is None
    assert done.selected_step == 33
    until, _ = training(tmp_path / "until", changes={"iterations": 33})
    assert same(ours, until)
    measured = {row.step: row.source_validation for row in read_history(tmp_path / "ours")}
    assert [measured[step] for step in (3, 30, 33, 50)] == [0.5, 0.9, 0.9, 0.4]
    left = iter(accuracies)
    stopped(tmp_path / "parts", 40, **options)
    left = iter(accuracies[13:])
    parts, done = training(tmp_path / "parts", **options)
    assert (done.selected_step, done.resumed_at) == (33, 40)
    assert same(parts, until)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": "bfloat16"},
        {"precision": "float16"},
        {"kind": "images", "changes": {"backbone_momentum": 0.0}},
    ],
    ids=str,
)
def test_an_interrupted_training_resumes_to_the_same_bytes(tmp_path, options):
    whole, _ = training(tmp_path / "whole", **options)
    stopped(tmp_path / "parts", **options)
    parts, done = training(tmp_path / "parts", **options)
    assert done.resumed_at == 24
    assert same(whole, parts)
    for name in (CHECKPOINT, "history.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_a_checkpoint_is_due_by_time_too(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_SECONDS", 1e-9)
    stopped(tmp_path, 25, checkpoint_every=1000)
    _, done = training(tmp_path, checkpoint_every=1000)
    assert done.resumed_at == 25


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        ({**IDENTITY, "data": "other"}, 'data was "drawn" and is "other"'),
        ({"data": "drawn"}, r'trainer\.name was "moments" and is absent'),
    ],
)
def test_a_checkpoint_of_another_training_raises(tmp_path, identity, message):
    before = (stopped(tmp_path) / CHECKPOINT).read_bytes()
    with pytest.raises(FileError, match=f"holds a checkpoint of another training: .*{message}"):
        training(tmp_path, identity=identity)
    assert (tmp_path / CHECKPOINT).read_bytes() == before


def forged(path, change):
    with safe_open(path, framework="pt") as file:
        document = json.loads(file.metadata()["shiftcal"])
    change(document)
    save_file(load_file(path), path, {"shiftcal": json.dumps(document)})


def flipped(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        lambda path: path.write_bytes(path.read_bytes()[:-9]),
        lambda path: path.write_bytes(b"\x80\x04 no safetensors"),
        lambda path: save_file(load_file(path), path),
        lambda path: forged(path, lambda d: d.pop("recent")),
        lambda path: forged(path, lambda d: d.update(version=9)),
        lambda path: forged(path, lambda d: d.update(rows=[[1]])),
    ],
    ids=["bit", "cut", "other", "no-document", "no-entry", "version", "rows"],
)
def test_a_damaged_checkpoint_raises_with_its_name(tmp_path, damage):
    damage(stopped(tmp_path) / CHECKPOINT)
    with pytest.raises(FileError, match=CHECKPOINT):
        training(tmp_path)


def test_a_damaged_history_raises(tmp_path):
    for text in ("step\nx,1,2,3,4,\n", "step\n1,2\n"):
        (tmp_path / "history.csv").write_text(text)
        with pytest.raises(FileError, match=r"history\.csv could not be read"):
            read_history(tmp_path)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("loss", "in step 37 of 60 the loss is nan .*transfer nan"),
        ("weights", r"in step 40 of 60 extra\.bias becomes NaN or infinite"),
    ],
)
def test_a_diverging_training_names_the_step_and_keeps_the_checkpoint(tmp_path, broken, message):
    with pytest.raises(FitError, match=rf"{message}.*at the learning rate 0\.04\d+") as caught:
        training(tmp_path, trainer=Moments(broken=broken))
    assert f"The checkpoint of step 32 is kept in {tmp_path}." in str(caught.value)
    with safe_open(tmp_path / CHECKPOINT, framework="pt") as file:
        assert json.loads(file.metadata()["shiftcal"])["step"] == 32
