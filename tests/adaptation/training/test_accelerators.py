"""What a training asks of devices that this machine may not have; stand-ins take their place."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch

from shiftcal.adaptation.feeds.base import Batch
from shiftcal.adaptation.training.determinism import deterministic
from shiftcal.adaptation.training.randomness import StepSeeds, kept_generators
from shiftcal.adaptation.training.step import Stepper


@pytest.fixture
def generators(monkeypatch):
    """Generators of a kind that torch has for each device."""
    made = {kind: [torch.Generator(), torch.Generator()] for kind in ("cuda", "xpu")}
    for kind, each in made.items():
        module = getattr(torch, kind)
        monkeypatch.setattr(module, "init", lambda: None)
        monkeypatch.setattr(module, "current_device", lambda: 1)
        monkeypatch.setattr(module, "default_generators", each)
    one = torch.Generator()
    monkeypatch.setattr(torch.mps, "get_rng_state", one.get_state)
    monkeypatch.setattr(torch.mps, "set_rng_state", one.set_state)
    monkeypatch.setattr(torch.mps, "manual_seed", one.manual_seed)
    return {"cuda:0": made["cuda"][0], "cuda": made["cuda"][1], "xpu": made["xpu"][1], "mps": one}


@pytest.mark.parametrize("name", ["cuda:0", "cuda", "xpu", "mps"])
def test_what_a_device_draws_follows_from_the_iteration(generators, name):
    device, own = torch.device(name), generators[name]
    own.manual_seed(5)
    before = own.get_state()
    with kept_generators(device):
        seeds = StepSeeds(3, device)
        drawn = []
        for step in (0, 1, 0):
            seeds.set(step)
            drawn.append(torch.rand(4, generator=own).tolist())
    assert drawn[0] == drawn[2] != drawn[1]
    assert torch.equal(own.get_state(), before)


def test_a_device_without_random_numbers_needs_none():
    with kept_generators(torch.device("meta")):
        StepSeeds(3, torch.device("meta")).set(1)


def test_cuda_is_asked_for_the_same_sums_every_time(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # so that it is put back afterwards
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    filled = torch.utils.deterministic.fill_uninitialized_memory
    with deterministic(torch.device("cuda")):
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert not torch.backends.cudnn.benchmark
        assert not torch.utils.deterministic.fill_uninitialized_memory
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.backends.cudnn.benchmark
    assert torch.utils.deterministic.fill_uninitialized_memory == filled
    with deterministic(torch.device("cpu")):
        assert not torch.are_deterministic_algorithms_enabled()


def test_who_asked_torch_for_errors_keeps_them():
    torch.use_deterministic_algorithms(True)
    try:
        with deterministic(torch.device("cuda")):
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


class Travelling:
    """A tensor that tells where it has been."""

    def __init__(self, *been):
        self.been = been

    def pin_memory(self):
        return Travelling(*self.been, "pinned")

    def to(self, device, *, non_blocking=False):
        return Travelling(*self.been, device.type, "later" if non_blocking else "at once")


@pytest.mark.parametrize(
    ("kind", "way"), [("cuda", ("pinned", "cuda", "later")), ("mps", ("mps", "at once"))]
)
def test_batches_go_to_cuda_from_pinned_memory(kind, way):
    seen = []

    def forward(*batch):
        seen.extend(batch)
        raise RuntimeError("far enough")

    stepper = Stepper(forward, SimpleNamespace(param_groups=[]), torch.device(kind))
    with pytest.raises(RuntimeError, match="far enough"):
        stepper(Batch(Travelling(), Travelling(), None), 7)
    assert seen[0].been == seen[1].been == way
    assert seen[2:] == [None, 7]
