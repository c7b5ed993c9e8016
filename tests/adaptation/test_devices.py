"""Devices, and several processes that train one network."""

from __future__ import annotations

import pytest
import torch
import training_pair
from training_process import Additive, training, weights

from shiftcal.adaptation.devices import (
    Group,
    cpu_threads,
    current_group,
    distributed,
    resolve_device,
)
from shiftcal.adaptation.training import loop
from shiftcal.errors import FileError, InputError


def test_auto_is_what_there_is():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert resolve_device("auto").type == resolve_device().type == expected
    assert resolve_device("cpu") == torch.device("cpu")


def test_of_several_gpus_a_process_has_its_own(monkeypatch):
    made = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "empty", lambda *_, device: made.append(device))
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert resolve_device("auto") == torch.device("cuda:3")
    assert resolve_device("cuda") == torch.device("cuda:3")
    assert resolve_device("cuda:1") == torch.device("cuda:1")
    assert len(made) == 3


@pytest.mark.parametrize("name", ["nonsense", "cuda:99", "xpu"])
def test_a_device_that_is_not_there_is_refused(name):
    with pytest.raises(InputError, match=f"device must be one that torch has here.*got '{name}'"):
        resolve_device(name)


def test_threads_are_set_back():
    before = torch.get_num_threads()
    with cpu_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("world", [None, "1"])
def test_a_process_of_its_own_joins_nobody(monkeypatch, world):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    if world is not None:
        told = {"RANK": "0", "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
        for name, value in told.items():
            monkeypatch.setenv(name, value)
    with distributed() as group:
        assert group == current_group() == Group()
        assert group.main
        assert group.alone
        tensor = torch.tensor([1.0, 2.0])
        assert group.mean(tensor) is tensor
        assert group.told("this") == "this"
        assert group.wrapped(tensor) is tensor
        group.share([tensor])
        group.wait()


def test_a_group_that_the_caller_has_joined_is_taken_and_left(tmp_path, monkeypatch):
    told = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1
    )
    try:
        with distributed("cpu") as group:
            assert group == Group(0, 1)
        assert torch.distributed.is_initialized()
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_train_together(tmp_path):
    first, second = training_pair.play(tmp_path)
    assert (first["rank"], second["rank"], first["world"]) == (0, 1, 2)
    assert first["between"] == second["between"] == 1
    assert first["warned"] == second["warned"] == []

    # Of a network without batch statistics, and a loss that is a mean over images: as one process
    # does on both their batches.
    one, _ = training(tmp_path / "one", trainer=Additive())
    for name, tensor in weights(one).items():
        # Sums in another order, for sixty steps.
        torch.testing.assert_close(
            torch.tensor(first["additive"][name]), tensor, atol=1e-5, rtol=1e-4
        )

    for told in (first, second):
        assert told["stopped"] == "stop"
        assert told["resumed_at"] == 24
        assert told["same"]
        assert "in step 13 of 60 the loss is nan" in told["diverged"]
        assert f"is kept in {tmp_path / 'diverged'}" in told["diverged"]
        assert told["selected"] == 48
        # Losses are looked at every third iteration, and there all see that one was interrupted.
        assert told["interrupted"]
        assert told["interrupted_at"] == 30
        assert told["interrupted_same"]
    assert first["additive"] == second["additive"]
    assert first["best"] == second["best"]
    # Only the first writes.
    kept = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert kept == ["checkpoint-60.safetensors", "checkpoint.json", "history.csv"]


def test_a_training_of_two_processes_is_not_one_of_one(tmp_path, monkeypatch):
    training(tmp_path)
    monkeypatch.setattr(loop, "current_group", lambda: Group(0, 2))
    with pytest.raises(FileError, match="processes was 1 and is 2"):
        training(tmp_path)
