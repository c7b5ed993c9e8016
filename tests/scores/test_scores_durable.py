"""Whether a file waits for the disk: always, unless told that it can be made again."""

from __future__ import annotations

import os

import numpy as np
import pytest

from shiftcal import SurrogateBank, read_scores, write_scores
from shiftcal.scores import Scores
from shiftcal.surrogates.folder import save_bank

LOGITS = np.random.default_rng(0).standard_normal((6, 3))
LABELS = np.arange(6) % 3


@pytest.fixture
def waits(monkeypatch):
    """A list that grows by one whenever the disk is waited for."""
    seen = []
    monkeypatch.setattr(os, "fsync", seen.append)
    return seen


@pytest.mark.parametrize("durable", [True, False])
def test_scores_wait_for_the_disk_unless_told(tmp_path, waits, durable):
    write_scores(tmp_path / "a.npz", Scores(LOGITS), durable=durable)
    assert bool(waits) is durable
    np.testing.assert_array_equal(read_scores(tmp_path / "a.npz").values, LOGITS)


@pytest.mark.parametrize("durable", [True, False])
def test_banks_wait_for_the_disk_unless_told(tmp_path, waits, durable):
    save_bank(SurrogateBank.from_arrays([LOGITS], LABELS), tmp_path / "bank", durable=durable)
    assert bool(waits) is durable
    np.testing.assert_array_equal(SurrogateBank.load(tmp_path / "bank").clean.logits, LOGITS)
