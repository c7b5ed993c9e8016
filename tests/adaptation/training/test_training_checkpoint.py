"""Checkpoints: what they hold, and what is refused."""

from __future__ import annotations

import json
import time
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors import safe_open
from training_process import (
    IDENTITY,
    Moments,
    Watched,
    data,
    network,
    same,
    settings,
    training,
)

from shiftcal.adaptation.devices import cpu_threads
from shiftcal.adaptation.feeds.arrays import ArrayFeed
from shiftcal.adaptation.training import ledger
from shiftcal.adaptation.training.checkpoint import Checkpoints, State
from shiftcal.adaptation.training.identity import differences
from shiftcal.adaptation.training.loop import Course, train
from shiftcal.adaptation.training.weights import not_finite
from shiftcal.errors import FileError


def stop(step):
    if step == 30:
        raise RuntimeError("stop")


@pytest.fixture
def stopped(tmp_path):
    """A folder with a checkpoint of 24 iterations."""
    with pytest.raises(RuntimeError, match="stop"):
        training(tmp_path, before=stop)
    return tmp_path


def test_a_checkpoint_has_every_tensor_and_says_of_what_training_it_is(stopped):
    files = sorted(path.name for path in stopped.iterdir())
    assert files == ["checkpoint-24.safetensors", "checkpoint.json", "history.csv"]
    document = json.loads((stopped / "checkpoint.json").read_text())
    assert document["state"]["step"] == 24
    assert document["identity"]["data"] == "drawn"
    assert document["identity"]["seed"] == 3
    assert document["identity"]["settings"]["lr"] == 0.05
    names = {
        "classifier.bottleneck.0.weight": (5, 7),
        "classifier.bottleneck.1.running_mean": (5,),
        "classifier.bottleneck.1.num_batches_tracked": (),
        "classifier.head.bias": (3,),
        "extra.weight": (2, 5),
        "momentum.classifier.bottleneck.0.weight": (5, 7),
        "momentum.extra.weight": (2, 5),
    }
    with safe_open(stopped / "checkpoint-24.safetensors", framework="numpy") as file:
        for name, shape in names.items():
            assert file.get_slice(name).get_shape() == list(shape)
        assert file.get_tensor("classifier.bottleneck.1.num_batches_tracked") == 24
        assert np.abs(file.get_tensor("momentum.extra.weight")).max() > 0
    assert not list(stopped.glob("*.tmp"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"changes": {"lr": 0.01}}, r"settings\.lr was 0\.05 and is 0\.01"),
        ({"changes": {"iterations": 70}}, r"settings\.iterations was 60 and is 70"),
        ({"seed": 4}, "seed was 3 and is 4"),
        ({"precision": "bfloat16"}, 'precision was null and is "bfloat16"'),
        ({"identity": {**IDENTITY, "data": "other"}}, 'data was "drawn" and is "other"'),
        ({"identity": {"data": "drawn"}}, r'trainer\.name was "moments" and is absent'),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(stopped, options, message):
    before = {path.name: path.read_bytes() for path in stopped.iterdir()}
    with pytest.raises(FileError, match=f"holds a checkpoint of another training: .*{message}"):
        training(stopped, **options)
    assert {path.name: path.read_bytes() for path in stopped.iterdir()} == before


def test_when_checkpoints_are_written_is_of_no_account(stopped, tmp_path):
    objective, done = training(stopped, checkpoint_every=7)
    assert done.resumed_at == 24
    whole, _ = training(tmp_path / "whole")
    assert same(objective, whole)
    for every in (7, 50):
        accuracies = iter([0.5] * 9 + [0.9] + [0.1] * 10)
        selecting = {"select": "source-validation", "validate": lambda _, a=accuracies: next(a)}
        best, done = training(tmp_path / f"{every}", checkpoint_every=every, **selecting)
        assert done.selected_step == 30
        again, done = training(tmp_path / f"{every}", checkpoint_every=1, **selecting)
        assert done.selected_step == 30
        assert same(best, again)


def test_differences_are_few_and_exact():
    before = {"a": {"b": 1, "c": [1, 2]}, "d": {}, "gone": True}
    assert not differences(before, dict(before))
    assert differences(before, {**before, "a": {"b": 1, "c": [1, 3]}}) == (
        "a.c was [1, 2] and is [1, 3]"
    )
    many = {f"n{i}": i for i in range(7)}
    told = differences({}, many)
    assert told.count("absent") == 4
    assert told.endswith("and 3 more")


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: flip(f / "checkpoint-24.safetensors", -1), "digest is not the one"),
        (lambda f: (f / "checkpoint-24.safetensors").unlink(), "No such file"),
        (lambda f: (f / "checkpoint-24.safetensors").write_bytes(b"x"), "digest is not the one"),
        (lambda f: flip(f / "checkpoint.json", -3), "checksum does not fit|not JSON"),
        (lambda f: (f / "checkpoint.json").write_text('{"format":'), "not JSON"),
        (lambda f: (f / "checkpoint.json").write_bytes(b"\xff\xfe"), "not JSON"),
    ],
    ids=["weights", "no weights", "other weights", "document", "half", "no text"],
)
def test_a_damaged_checkpoint_is_told(stopped, damage, message):
    damage(stopped)
    with pytest.raises(FileError, match=f"cannot be read: .*({message}).*Remove .* anew"):
        training(stopped)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "is not a checkpoint: it has no format 'shiftcal-checkpoint'"),
        ('{"format": "other"}', "is not a checkpoint"),
        (
            '{"format": "shiftcal-checkpoint", "version": 9, "written_by": "shiftcal 9"}',
            "has version 9, written by shiftcal 9; this shiftcal reads version 1",
        ),
    ],
)
def test_another_file_of_that_name_is_told(tmp_path, text, message):
    (tmp_path / "checkpoint.json").write_text(text)
    with pytest.raises(FileError, match=message):
        training(tmp_path)


def test_weights_are_never_unpickled(stopped, monkeypatch):
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("torch.load was called"))
    monkeypatch.setattr("pickle.loads", lambda *_, **__: pytest.fail("pickle was called"))
    training(stopped)


def test_a_file_may_hold_more_than_is_asked_for_but_not_less(tmp_path):
    kept = Checkpoints(tmp_path, {})
    state = State(step=3, stopped_at=3, since=0, sums=[0.0] * 3, rows=[])
    full = dict(network("features", Moments()).state_dict())
    kept.write(state, full)
    fewer = {name: torch.zeros_like(full[name]) for name in list(full)[:2]}
    assert Checkpoints(tmp_path, {}).read(fewer) == state
    assert all(torch.equal(fewer[name], full[name]) for name in fewer)
    other = {**fewer, "more": torch.zeros(2)}
    with pytest.raises(FileError, match="weights of another network: it has no more"):
        kept.fill(other, 3)
    shape = {name: torch.zeros(3, 3) for name in fewer}
    with pytest.raises(FileError, match=r"another network: .* has shape .*, not \(3, 3\)"):
        kept.fill(shape, 3)


def test_tied_and_strided_weights_are_kept(tmp_path):
    def tied():
        objective = network("images", Moments())
        objective.classifier.head.weight = torch.nn.Parameter(torch.ones(3, 5))
        objective.extra = torch.nn.Linear(5, 3)
        objective.extra.weight = objective.classifier.head.weight
        torch.nn.init.zeros_(objective.extra.bias)
        return objective.to(memory_format=torch.channels_last)

    def run(folder, before=None):
        objective = tied()
        feed = ArrayFeed(*data("images"), batch_size=8, seed=3)
        feed = feed if before is None else Watched(feed, before)
        course = Course(device="cpu", checkpoint_every=8)
        with cpu_threads(1), patch.object(ledger, "_SHARE", float("inf")):
            train(objective, feed, settings(lr=0.01), folder, course, identity={})
        return objective

    whole = run(tmp_path / "whole")
    with pytest.raises(RuntimeError, match="stop"):
        run(tmp_path / "parts", stop)
    parts = run(tmp_path / "parts")
    assert same(whole, parts)
    assert parts.extra.weight is parts.classifier.head.weight


def test_checkpoints_that_take_too_long_are_left_out_but_for_the_last(tmp_path, monkeypatch):
    written = []

    def slow(self, state, tensors):
        written.append(state.step)
        time.sleep(0.3)

    monkeypatch.setattr(Checkpoints, "write", slow)
    feed = ArrayFeed(*data("features"), batch_size=8, seed=3)

    def run(folder, **options):
        written.clear()
        course = Course(device="cpu", checkpoint_every=8, **options)
        with cpu_threads(1):
            train(
                network("features", Moments()),
                feed,
                settings(iterations=30),
                tmp_path / folder,
                course,
                identity={},
                validate=lambda _: next(accuracies),
            )
        return list(written)

    accuracies = iter(([0.3] + [0.2] * 8 + [0.4] + [0.1] * 4 + [0.4]) * 2)
    # The second would have to wait for six seconds.
    assert run("last") == [8, 30]
    assert run("best", select="source-validation") == [2, 20, 30]


def test_a_sum_that_is_too_large_is_told_from_numbers_that_are_not_finite():
    large = torch.full((4,), 3e38)
    whole = {"counts": torch.tensor([1, 2]), "half": torch.ones(3, dtype=torch.float16)}
    assert not_finite({**whole, "large": large}) is None
    for wrong in (float("nan"), float("inf"), -float("inf")):
        assert not_finite({**whole, "large": large, "w": torch.tensor([1.0, wrong])}) == "w"
    both = torch.tensor([float("inf"), -float("inf")])
    assert not_finite({**whole, "both": both}) == "both"


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="could not be made"):
        training(tmp_path / "file" / "run")
