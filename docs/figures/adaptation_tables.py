"""Tables of the pages on domain adaptation, from the committed results.

``TABLES`` is what ``tables.py`` takes.
"""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "accuracy" / "results"


def markdown(head, rows):
    rule = ["---", *("--:" for _ in head[1:])]
    return "".join("| " + " | ".join(row) + " |\n" for row in (head, rule, *rows))


def controls():
    """What a trainer's loss adds to the same training without it."""
    found = json.loads((RESULTS / "controls.json").read_text("utf-8"))
    rows = [
        [
            f"`{name}`",
            *(f"{100 * row[key]:.1f}" for key in ("control", "full")),
            f"{100 * row['control_over_source_only']:+.1f}",
            f"{100 * row['loss_adds']:+.1f}",
            f"{row['tasks_better']} of {row['trainings']}",
        ]
        for name, row in found["summary"].items()
        if name != "source-only"
    ]
    alone = 100 * found["summary"]["source-only"]["full"]
    n_tasks = len({row["task"] for row in found["rows"]})
    seeds = ", ".join(map(str, found["seeds"]))
    head = ["trainer", "`trade_off = 0`", "as it is", "control over `source-only`", "the loss adds"]
    return (
        f"{markdown([*head, 'tasks that it helps'], rows)}\nAccuracy on the held-out target in "
        f"percent, PACS, means over {n_tasks} tasks, seed {seeds}; `source-only` has {alone:.1f}.\n"
    )


TABLES = {"controls": controls}
