"""What the page on groups claims holds in the committed results, and its tables equal them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOUND = json.loads((ROOT / "benchmarks/accuracy/results/groups.json").read_text("utf-8"))
METHODS = ("sac", "rehearsal")


def ece(method, kind, size="all", what="each"):
    return FOUND["ece"][method][kind][size][what]


@pytest.mark.parametrize("method", METHODS)
def test_on_mixed_targets_groups_beat_one_choice(method):
    for what in ("each", "together"):
        found = ece(method, "mixed", what=what)
        assert found["shrunk"] < found["global"]


def test_shrinkage_helps_sac_but_for_groups_of_very_unlike_sizes():
    for size in ("20", "50", "200", "2000", "all"):
        found = ece("sac", "mixed", size)
        assert found["shrunk"] < found["own"]
    unlike = ece("sac", "mixed", "20 and 2000")
    assert unlike["own"] < unlike["shrunk"] < unlike["global"]


def test_shrinkage_costs_something_with_rehearsal_where_groups_differ_much():
    for size in ("20", "50", "200", "2000", "20 and 2000"):
        found = ece("rehearsal", "mixed", size)
        assert found["own"] < found["shrunk"] < found["global"]


@pytest.mark.parametrize("method", METHODS)
def test_where_groups_do_not_differ_shrinkage_keeps_near_one_choice(method):
    found = ece(method, "alike")
    assert found["shrunk"] < found["own"]
    assert found["shrunk"] < 1.1 * found["global"]
    few = ece(method, "alike", "20")
    assert few["own"] > 1.25 * few["global"]
    assert few["shrunk"] < 1.15 * few["global"]


def test_the_tables_of_the_page_are_those_of_the_results():
    path = ROOT / "docs" / "figures" / "groups_tables.py"
    spec = importlib.util.spec_from_file_location("groups_tables", path)
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    page = (ROOT / "docs" / "groups.md").read_text("utf-8")
    assert tables.renewed(page) == page, "run docs/figures/groups_tables.py"
    assert page.count("<!-- table: ") == len(tables.TABLES)
