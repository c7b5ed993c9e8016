"""Committed results, and how a table of them is written."""

from __future__ import annotations

import json
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "accuracy" / "results"
SPEED = BENCHMARKS / "speed" / "results"


def load(name, folder=RESULTS):
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def markdown(head, rows, *, words=1):
    """A table; the first ``words`` columns are text, the others numbers."""
    rule = ["---" if i < words else "--:" for i in range(len(head))]
    return "".join("| " + " | ".join(row) + " |\n" for row in (head, rule, *rows))


def percent(value):
    return f"{100 * value:.1f}"
