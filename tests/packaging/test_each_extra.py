"""The wheel with one extra alone: what it serves is there, and nothing else is asked for."""

from __future__ import annotations

import json

import pytest
from released import EXTRAS, SERVED, names_without_extra, requirements


def test_what_every_extra_serves_is_tried():
    assert sorted(file.stem for file in SERVED.glob("*.py")) == EXTRAS


def test_all_is_all_of_them():
    (line,) = requirements("all")
    assert sorted(line.partition("[")[2].strip("]").split(",")) == EXTRAS


def marked(extra):
    """Large ones take a minute each."""
    return pytest.param(extra, marks=pytest.mark.slow) if extra in {"ray", "torch"} else extra


@pytest.mark.parametrize("extra", [marked(extra) for extra in EXTRAS])
def test_an_extra_serves_alone(environment, extra, tmp_path):
    alone = environment("core", extra)
    assert set(names_without_extra(alone).values()) == {"torch"} - {extra}
    alone.call("-P", SERVED / f"{extra}.py", cwd=tmp_path)
    doctor = json.loads(alone.call("-m", "shiftcal", "doctor", "--imports", "--json").stdout)
    assert doctor["problems"] == []
    assert doctor["extras"][extra]["complete"]
