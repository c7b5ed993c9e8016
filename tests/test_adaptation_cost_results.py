"""What the committed measurement says of the trainers' cost is what they are meant to cost."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest

from shiftcal import adaptation

RESULT = Path(__file__).parents[1] / "benchmarks/speed/results/adaptation.json"
LIMITS = {"dan": 1.3, "jan": 1.3, "mcc": 1.3, "safn": 1.3, "cdan": 2.0, "mdd": 2.0}


def test_every_trainer_that_adapts_has_a_limit():
    assert {name for name in adaptation.names() if adaptation.get(name).adapts} == set(LIMITS)


@pytest.mark.parametrize("name", LIMITS)
def test_a_task_takes_no_longer_than_it_may_beside_the_plain_loop(name):
    found = json.loads(RESULT.read_text())["threads"]
    assert "1" in found
    for one in found.values():
        assert len(one["times_plain"][name]) == 5
        assert median(one["times_plain"][name]) <= LIMITS[name]
