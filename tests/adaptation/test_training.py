"""The training loop: its result, its checkpoint, and what it rejects."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import final

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.nn import functional
from training_process import (
    IDENTITY,
    Moments,
    Watched,
    begin,
    data,
    network,
    same,
    settings,
    training,
    weights,
)

from shiftcal.adaptation.feeds import ArrayFeed, Feed
from shiftcal.adaptation.loop import (
    Course,
    differences,
    read_history,
    resolve_device,
    seeded,
    train,
)
from shiftcal.adaptation.trainer import Trainer
from shiftcal.errors import FileError, FitError, InputError
from shiftcal.models.pytorch import torch_threads

CHECKPOINT = "checkpoint.safetensors"


@pytest.fixture(autouse=True)
def one_thread():
    with torch_threads(1):
        yield


def stop(step):
    if step == 30:
        raise RuntimeError("stop")


@pytest.fixture
def stopped(tmp_path):
    """A folder with a checkpoint of 24 steps."""
    with pytest.raises(RuntimeError, match="stop"):
        training(tmp_path / "stopped", before=stop)
    return tmp_path / "stopped"


@pytest.mark.parametrize("kind", ["features", "images"])
def test_weights_are_those_of_a_loop_written_by_hand(tmp_path, kind):
    trainer = Moments(dropout=0.0, trade_off=0.3)
    ours, done = training(tmp_path, kind=kind, trainer=trainer)
    assert (done.steps, done.selected_step, done.resumed_at) == (60, 60, 0)
    assert done.images_per_second > 0

    theirs = network(kind, trainer)
    named = list(theirs.named_parameters())
    backbone = [p for name, p in named if "backbone" in name]
    added = [p for name, p in named if "backbone" not in name]
    groups = [{"params": added, "lr": 1.0}, {"params": backbone, "lr": 0.1}]
    sgd = torch.optim.SGD(
        groups[: 1 + bool(backbone)], momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    falling = torch.optim.lr_scheduler.LambdaLR(sgd, lambda t: 0.05 * (1 + 3e-4 * t) ** -0.75)
    for batch in ArrayFeed(*data(kind), batch_size=8, seed=3).batches(0, 60):
        sgd.zero_grad()
        both = theirs.classifier.both(torch.cat([batch.source, batch.target]))
        loss = functional.cross_entropy(both.logits[:8], batch.labels)
        seen = theirs.extra(both.features)
        loss = loss + 0.3 * (seen[:8].mean(0) - seen[8:].mean(0)).square().sum()
        loss.backward()
        sgd.step()
        falling.step()
    for name, tensor in weights(theirs).items():
        torch.testing.assert_close(weights(ours)[name], tensor, atol=2e-5, rtol=2e-5)


def test_momentum_of_the_backbone_may_differ(tmp_path):
    changes = {"backbone_momentum": 0.0, "nesterov": True}
    objective, _ = training(tmp_path, kind="images", changes=changes)
    assert all(torch.isfinite(p).all() for p in objective.parameters())
    names = load_file(tmp_path / CHECKPOINT)
    assert not any(name.startswith("momentum.classifier.backbone") for name in names)
    assert "momentum.extra.weight" in names


def test_two_trainings_are_equal_to_the_last_bit_and_another_seed_is_not(tmp_path):
    one, _ = training(tmp_path / "one")
    two, _ = training(tmp_path / "two", checkpoint_every=7)
    other, _ = training(tmp_path / "other", seed=4)  # of dropout alone
    assert same(one, two)
    assert not same(one, other)


def test_the_network_learns_and_ends_in_evaluation_mode(tmp_path):
    objective, _ = training(tmp_path, changes={"iterations": 200})
    source, labels, _ = data("features")
    accuracy = (objective.classifier(torch.from_numpy(source)).argmax(1).numpy() == labels).mean()
    assert accuracy > 0.8
    assert not any(module.training for module in objective.modules())
    rows = read_history(tmp_path)
    assert len(rows) == 100
    assert rows[-1].step == 200
    assert rows[-1].classification < 0.8 * rows[0].classification


def test_random_numbers_of_the_caller_are_left_alone(tmp_path):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    training(tmp_path)
    with seeded(5):
        first = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(5):
        assert torch.equal(torch.rand(3), first)


def test_the_best_on_the_source_is_selected_and_the_latest_of_equals(tmp_path):
    # After 3, 6 ... 48 and 50 steps: the best are those of 30 and 33.
    accuracies = [0.5] * 9 + [0.9, 0.9] + [0.4] * 6
    left = iter(accuracies)

    def validate(classifier):
        assert not classifier.training
        assert not torch.is_grad_enabled()
        return next(left)

    options = {"select": "source-validation", "changes": {"iterations": 50}}
    ours, done = training(tmp_path / "ours", validate=validate, **options)
    assert next(left, None) is None
    assert done.selected_step == 33
    until, _ = training(tmp_path / "until", changes={"iterations": 33})
    assert same(ours, until)
    measured = {row.step: row.source_validation for row in read_history(tmp_path / "ours")}
    assert [measured[step] for step in (3, 30, 33, 50)] == [0.5, 0.9, 0.9, 0.4]
    again, done = training(tmp_path / "ours", validate=validate, **options)
    assert (done.selected_step, done.resumed_at) == (33, 50)
    assert same(again, until)

    def at_40(step):
        if step == 40:
            raise RuntimeError("stop")

    left = iter(accuracies)
    with pytest.raises(RuntimeError, match="stop"):
        training(tmp_path / "parts", validate=validate, before=at_40, **options)
    left = iter(accuracies[13:])
    parts, done = training(tmp_path / "parts", validate=validate, **options)
    assert (done.selected_step, done.resumed_at) == (33, 40)
    assert same(parts, until)


def test_a_finished_training_is_not_repeated(tmp_path):
    one, first = training(tmp_path)
    two, second = training(tmp_path, before=pytest.fail)
    assert same(one, two)
    assert (second.resumed_at, second.losses, second.images_per_second) == (60, first.losses, 0)


@pytest.mark.parametrize(
    "options", [{}, {"precision": "bfloat16"}, {"precision": "float16"}], ids=str
)
def test_an_interrupted_training_resumes_to_the_same_weights(tmp_path, options):
    whole, _ = training(tmp_path / "whole", **options)
    with pytest.raises(RuntimeError, match="stop"):
        training(tmp_path / "parts", before=stop, **options)
    parts, done = training(tmp_path / "parts", **options)
    assert done.resumed_at == 24
    assert same(whole, parts)
    for name in (CHECKPOINT, "history.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_a_killed_training_resumes_to_the_same_bytes(tmp_path):
    training(tmp_path / "whole")
    log = tmp_path / "log"
    process = begin(tmp_path / "killed", log=log, sleep=0.01)
    end = time.monotonic() + 120
    while not (log.exists() and len(log.read_text().split()) > 35) and time.monotonic() < end:
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert process.returncode != 0
    _, done = training(tmp_path / "killed")
    assert done.resumed_at >= 32
    for name in (CHECKPOINT, "history.csv"):
        whole, killed = (tmp_path / run / name for run in ("whole", "killed"))
        assert whole.read_bytes() == killed.read_bytes()


def test_a_checkpoint_is_due_by_time_too(tmp_path):
    def at_25(step):
        if step == 25:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        training(tmp_path, before=at_25, checkpoint_every=1000, checkpoint_seconds=1e-9)
    _, done = training(tmp_path, checkpoint_every=1000)
    assert done.resumed_at == 25


def test_a_checkpoint_has_every_tensor_and_the_identity_of_the_training(stopped):
    assert sorted(path.name for path in stopped.iterdir()) == [CHECKPOINT, "history.csv"]
    shapes = {
        "classifier.bottleneck.0.weight": (5, 7),
        "classifier.bottleneck.1.running_mean": (5,),
        "extra.weight": (2, 5),
        "momentum.classifier.bottleneck.0.weight": (5, 7),
    }
    with safe_open(stopped / CHECKPOINT, framework="numpy") as file:
        document = json.loads(file.metadata()["shiftcal"])
        for name, shape in shapes.items():
            assert file.get_slice(name).get_shape() == list(shape)
        assert file.get_tensor("classifier.bottleneck.1.num_batches_tracked") == 24
        assert np.abs(file.get_tensor("momentum.extra.weight")).max() > 0
    assert document["state"]["step"] == 24
    assert document["identity"]["data"] == "drawn"
    assert document["identity"]["settings"]["lr"] == 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"changes": {"lr": 0.01}}, r"settings\.lr was 0\.05 and is 0\.01"),
        ({"seed": 4}, "seed was 3 and is 4"),
        ({"precision": "bfloat16"}, 'precision was null and is "bfloat16"'),
        ({"identity": {**IDENTITY, "data": "other"}}, 'data was "drawn" and is "other"'),
        ({"identity": {"data": "drawn"}}, r'trainer\.name was "moments" and is absent'),
    ],
)
def test_a_checkpoint_of_another_training_raises(stopped, options, message):
    before = {path.name: path.read_bytes() for path in stopped.iterdir()}
    with pytest.raises(FileError, match=f"holds a checkpoint of another training: .*{message}"):
        training(stopped, **options)
    assert {path.name: path.read_bytes() for path in stopped.iterdir()} == before


def test_differences_are_few_and_exact():
    before = {"a": {"b": 1, "c": [1, 2]}, "d": {}, "gone": True}
    assert not differences(before, dict(before))
    other = {**before, "a": {"b": 1, "c": [1, 3]}}
    assert differences(before, other) == "a.c was [1, 2] and is [1, 3]"
    many = differences({}, {f"n{i}": i for i in range(7)})
    assert many.count("absent") == 4
    assert many.endswith("and 3 more")


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
        lambda path: forged(path, lambda d: d.pop("state")),
        lambda path: forged(path, lambda d: d.update(version=9)),
        lambda path: forged(path, lambda d: d["state"].update(rows=[[1]])),
        lambda path: forged(path, lambda d: d["state"].update(step="x")),
    ],
    ids=["bit", "cut", "other", "no-document", "no-state", "version", "rows", "step"],
)
def test_a_damaged_checkpoint_raises_with_its_name(stopped, damage):
    damage(stopped / CHECKPOINT)
    with pytest.raises(FileError, match=CHECKPOINT):
        training(stopped)


def test_nothing_is_unpickled(stopped, monkeypatch):
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("torch.load was called"))
    monkeypatch.setattr("pickle.loads", lambda *_, **__: pytest.fail("pickle was called"))
    training(stopped)


@pytest.mark.parametrize("text", ["step\nx,1,2,3,4,\n", "step\n1,2\n", "\x00"])
def test_a_damaged_history_raises(tmp_path, text):
    (tmp_path / "history.csv").write_text(text)
    if text == "\x00":
        assert read_history(tmp_path) == []
        return
    with pytest.raises(FileError, match=r"history\.csv could not be read"):
        read_history(tmp_path)


@final
@dataclass(frozen=True, kw_only=True)
class Breaking(Trainer):
    label = "Breaking"
    weights: bool = False

    def extra(self, width, n_classes):
        return torch.nn.Linear(1, 1)  # nothing depends on it

    def transfer(self, source, target, extra, step):
        if self.weights and step == 36:
            extra.weight.data.fill_(float("inf"))
        wrong = float("nan") if step == 36 and not self.weights else 1.0
        return source.features.mean() * wrong


def test_a_diverging_training_names_the_step_and_keeps_the_checkpoint(tmp_path):
    with pytest.raises(FitError) as caught:
        training(tmp_path, trainer=Breaking())
    message = str(caught.value)
    assert "in step 37 of 60 the loss is nan" in message
    assert "transfer nan" in message
    assert f"learning rate {0.05 * (1 + 3e-4 * 36) ** -0.75:.3g}" in message
    assert f"The checkpoint of step 32 is kept in {tmp_path}." in message
    assert "smaller lr or trade_off" in message


def test_weights_that_are_not_finite_are_never_saved(tmp_path):
    with pytest.raises(FitError, match=r"after step 40 of 60 extra\.weight holds NaN or infinite"):
        training(tmp_path, trainer=Breaking(weights=True))
    with safe_open(tmp_path / CHECKPOINT, framework="pt") as file:
        assert json.loads(file.metadata()["shiftcal"])["state"]["step"] == 32


def test_layers_may_share_weights(tmp_path):
    def run(folder, before=None):
        objective = network("images", Moments())
        objective.extra = torch.nn.Linear(5, 3)
        objective.extra.weight = objective.classifier.head.weight
        torch.nn.init.zeros_(objective.extra.bias)
        feed = ArrayFeed(*data("images"), batch_size=8, seed=3)
        feed = feed if before is None else Watched(feed, before)
        course = Course(device="cpu", checkpoint_every=8)
        train(objective, feed, settings(lr=0.01), folder, course, identity={})
        return objective

    whole = run(tmp_path / "whole")
    with pytest.raises(RuntimeError, match="stop"):
        run(tmp_path / "parts", stop)
    parts = run(tmp_path / "parts")
    assert same(whole, parts)
    assert parts.extra.weight is parts.classifier.head.weight


def test_a_training_may_run_in_another_thread(tmp_path):
    done = []
    thread = threading.Thread(target=lambda: done.append(training(tmp_path / "there")))
    thread.start()
    thread.join(60)
    here, _ = training(tmp_path / "here")
    assert same(done[0][0], here)


class Short(Feed):
    def batches(self, first, last):
        yield from ArrayFeed(*data("features"), batch_size=8, seed=3).batches(first, 23)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: Course(seed=-1), "seed must be a whole number"),
        (lambda _: Course(checkpoint_every=0), "checkpoint_every must be a whole number"),
        (lambda _: Course(checkpoint_seconds=0), "checkpoint_seconds must be a number above 0"),
        (lambda _: Course(select="target"), "select must be one of 'last', 'source-validation'"),
        (lambda _: Course(precision="half"), "precision must be one of 'bfloat16', 'float16'"),
        (lambda _: resolve_device("abacus"), "device must be one that torch has here"),
        (lambda f: training(f, select="source-validation"), "needs .*pass validate"),
        (
            lambda f: train(
                network("features", Moments()),
                Short(),
                settings(),
                f,
                Course(device="cpu"),
                identity={},
            ),
            "a batch for each of 60 steps; it ended after 23",
        ),
    ],
)
def test_bad_input_raises(tmp_path, call, message):
    with pytest.raises(InputError, match=message):
        call(tmp_path)
