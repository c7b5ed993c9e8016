"""Trainings that diverge: what is said of them, and what is left."""

from __future__ import annotations

import pytest
import torch
from one_layer import one_layer
from two_domains import colour_model, domains

from shiftcal.adaptation import Adapted, adapt, last_checkpoint
from shiftcal.adaptation.devices import cpu_threads
from shiftcal.adaptation.trainers.dan import DAN
from shiftcal.adaptation.training import ledger
from shiftcal.errors import FileError, FitError, InputError

QUICK = {"iterations": 30, "batch_size": 6, "bottleneck": 5}
BACKBONES = {
    "frozen": lambda: {"backbone": colour_model(), "frozen": True},
    "network": lambda: {"backbone": one_layer()},
}


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Every checkpoint is written, however little time has passed."""
    monkeypatch.setattr(ledger, "_SHARE", float("inf"))
    with cpu_threads(1):
        yield


@pytest.fixture
def diverging(monkeypatch):
    """After so many steps the loss is NaN; ``None`` is never."""
    transfer = DAN.transfer

    def from_step(first):
        def wrong(self, source, target, extra, step):
            loss = transfer(self, source, target, extra, step)
            return loss if first is None or step < first else loss * float("nan")

        monkeypatch.setattr(DAN, "transfer", wrong)

    return from_step


def trained(folder, mode, **options):
    wanted = {"trainer": "dan", "severities": (5,), "changes": QUICK, **BACKBONES[mode]()}
    return adapt(*domains(45), folder, checkpoint_every=5, **{**wanted, **options})


@pytest.mark.parametrize("mode", BACKBONES)
def test_the_last_checkpoint_of_a_diverged_training_can_be_had(tmp_path, diverging, mode):
    torch.manual_seed(3)
    drawn = torch.get_rng_state()
    whole = trained(tmp_path / "whole", mode, changes={**QUICK, "iterations": 10})
    diverging(12)
    with pytest.raises(FitError, match="step 13 of 30"):
        trained(tmp_path / "run", mode)
    with pytest.raises(FileError, match="the training diverged: in step 13") as raised:
        Adapted.open(tmp_path / "run")
    assert "goes on" not in str(raised.value)
    assert "adaptation.last_checkpoint(folder)" in str(raised.value)
    given = None if mode == "frozen" else one_layer()
    made = last_checkpoint(tmp_path / "run", given)
    assert not made.training
    expected = whole.classifier(given).state_dict()
    found = made.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert torch.equal(torch.get_rng_state(), drawn)


def test_without_a_checkpoint_that_is_said(tmp_path, diverging):
    diverging(2)
    with pytest.raises(FitError, match="no checkpoint yet"):
        trained(tmp_path / "run", "frozen")
    with pytest.raises(FileError, match="There was no checkpoint yet") as raised:
        Adapted.open(tmp_path / "run")
    assert "last_checkpoint" not in str(raised.value)
    with pytest.raises(FileError, match="holds no checkpoint: the training diverged"):
        last_checkpoint(tmp_path / "run")


def test_a_training_that_is_gone_on_with_is_no_more_called_diverged(tmp_path, diverging):
    diverging(12)
    with pytest.raises(FitError):
        trained(tmp_path / "run", "frozen")
    diverging(None)
    made = trained(tmp_path / "run", "frozen")
    assert made.document["trained"]["resumed_at"] == 10
    assert Adapted.open(tmp_path / "run").document == made.document


def test_one_that_is_broken_off_after_that_is_called_unfinished(tmp_path, diverging, monkeypatch):
    diverging(12)
    with pytest.raises(FitError):
        trained(tmp_path / "run", "frozen")

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(DAN, "transfer", stopped)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "run", "frozen")
    with pytest.raises(FileError, match="holds a run that is not finished"):
        Adapted.open(tmp_path / "run")


def test_where_nothing_diverged_that_is_said(tmp_path):
    with pytest.raises(FileError, match="holds no training that diverged"):
        last_checkpoint(tmp_path)


def test_a_damaged_checkpoint_is_told(tmp_path, diverging):
    diverging(12)
    with pytest.raises(FitError):
        trained(tmp_path / "run", "frozen")
    (tmp_path / "run" / "training" / "checkpoint.json").write_text("{")
    with pytest.raises(FileError, match=r"checkpoint\.json cannot be read"):
        last_checkpoint(tmp_path / "run")


def test_a_module_must_be_passed_again(tmp_path, diverging):
    diverging(12)
    with pytest.raises(FitError):
        trained(tmp_path / "run", "network")
    with pytest.raises(InputError, match="does not say how its backbone is made"):
        last_checkpoint(tmp_path / "run")
