"""The example of the docs is a card that the script makes, and the page tells what is in it."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import fields
from pathlib import Path

import pytest

from shiftcal.cards import _limits, parts, read_card

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "card.md").read_text("utf-8")


@pytest.fixture(scope="module")
def example():
    return read_card(DOCS / "card-example.json")


def test_the_page_of_the_example_is_its_json(example):
    text = (DOCS / "card-example.md").read_text("utf-8")
    assert text == example.to_markdown(), "run docs/figures/card.py"


@pytest.mark.slow
def test_the_script_makes_the_example(example):
    path = DOCS / "figures" / "card.py"
    spec = importlib.util.spec_from_file_location("card_figure", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.make()
    assert [limit.code for limit in made.limits] == [limit.code for limit in example.limits]
    assert made.calibration.label_counts == example.calibration.label_counts
    for one, other in zip(made.bank, example.bank, strict=True):
        assert one.name == other.name
        # Another build of the solver stops elsewhere, by a row or two of 700.
        assert one.accuracy == pytest.approx(other.accuracy, abs=0.006)
        assert one.temperature == pytest.approx(other.temperature, rel=0.05)


def test_what_the_page_says_of_the_example_is_so(example):
    """That ECE is no lower after than before, near the noise, and the target flagged as clean."""
    (noise,) = (one.message for one in example.limits if one.code == "ece-noise")
    level = float(re.search(r"about (0\.\d+) on the [\d,]+ rows of the target", noise).group(1))
    before, after = example.on_target.before["ece"].value, example.on_target.after["ece"].value
    assert before <= after < 1.5 * level
    assert example.choice.has("like-clean")


def test_every_limit_of_the_source_is_on_the_page():
    source = Path(_limits.__file__).read_text("utf-8")
    codes = set(re.findall(r"Limit\(\s*\"([a-z-]+)\"", source))
    assert len(codes) > 15
    section = PAGE.partition("## Limits")[2].partition("\n## ")[0]
    assert codes == set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", section))


def test_every_key_of_the_json_is_on_the_page(example):
    section = PAGE.partition("## The JSON")[2]
    named = set(re.findall(r"`(\w+)`", section))
    assert set(example.to_dict()) <= named
    for part in (parts.Model, parts.Calibration, parts.Target, parts.BankSet, parts.Applied,
                 parts.Measured, parts.Measure, parts.Judging, parts.Provenance):  # fmt: skip
        assert {field.name for field in fields(part)} <= named, part
