"""What shiftcal promised when it was last written down, it promises still."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from corrupted import SMALL, TABLES, digest, golden_images

from shiftcal import corrupt, corruptions

sys.path.insert(0, str(Path(__file__).parent))

import promises

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("what", ["names", "commands", "inputs"])
def test_names_options_and_digests_are_the_same(what):
    _compare(promises.recorded()[0][what], getattr(promises, what)())


def test_exit_codes_and_documents_are_the_same(tmp_path, monkeypatch):
    for name in ("SHIFTCAL_CACHE", "SHIFTCAL_DATA"):
        monkeypatch.delenv(name, raising=False)
    _compare(promises.recorded()[0]["invocations"], promises.invocations(tmp_path))


def test_numbers_are_the_same_and_survive_saving(tmp_path):
    wanted, found = promises.recorded()[1], promises.numbers(tmp_path)
    assert sorted(found) == sorted(wanted)
    same_machine = promises.recorded()[0]["rounding"] == promises.rounding()
    tolerance = {"rtol": 1e-12, "atol": 1e-14} if same_machine else {"rtol": 1e-5, "atol": 1e-7}
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, **tolerance, err_msg=name)


@pytest.mark.parametrize("name", corruptions.names())
def test_the_public_function_makes_the_golden_pixels(name):
    digests = json.loads((promises.GOLDEN / "manifest.json").read_text("utf-8"))
    for table in TABLES:
        for severity in range(1, 6):
            made = corrupt(golden_images(*SMALL), name, severity=severity, table=table, seed=1)
            assert digest(made) == digests[f"{name}/{table}/{severity}"][0], (table, severity)


def _compare(wanted: dict, found: dict) -> None:
    """One line for each difference is easier to read than two documents."""
    keys = [key for key in {**wanted, **found} if wanted.get(key) != found.get(key)]
    assert not keys, "\n".join(f"{k}\n  was {wanted.get(k)}\n  is  {found.get(k)}" for k in keys)
