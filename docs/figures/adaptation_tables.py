"""Tables of the pages on domain adaptation, from the committed results.

``TABLES`` is what ``tables.py`` takes.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

from shiftcal import adaptation
from shiftcal.studies.adapting.paper import PUBLISHED

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "accuracy" / "results"
STUDIES = ("pacs", "office-caltech", "digits")
# Methods of the paper, as its tables name them and as files do.
METHODS = {
    **{"Vanilla": "vanilla", "TS": "ts", "CPCS": "cpcs"},
    **{"TransCal": "transcal", "SAC": "sac", "STS": "sts"},
}
ADAPTED = "mean, adapted"
_STS = re.compile(r"of (\d+) tasks STS has the lowest mean ECE .*\bCDAN (\d+)")
_CLEAN = re.compile(r"SAC chose the clean set, .* with adapted networks in (\d+ of \d+) eval")
_BLIND = re.compile(r"It chose the clean set for (\d+) of the adapted networks .*, (\d+) of \d+\.")


def markdown(head, rows):
    rule = ["---", *("--:" for _ in head[1:])]
    return "".join("| " + " | ".join(row) + " |\n" for row in (head, rule, *rows))


def study(name):
    """ECE in percent by trainer and method of the paper, and what was remarked on."""
    folder = RESULTS / "studies" / name
    with (folder / "tables" / "ece-by-trainer.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Method"] in METHODS]
    labels = [ADAPTED, *(adaptation.get(t).label for t in PUBLISHED["visda"].trainers)]
    errors = {label: {row["Method"]: float(row[label]) for row in rows} for label in labels}
    return errors, " ".join(json.loads((folder / "run.json").read_text("utf-8"))["remarks"])


def papers():
    """The same of VisDA-2017, as the paper has it."""
    table = PUBLISHED["visda"]
    errors = {
        adaptation.get(trainer).label: {
            label: table.mean(trainer, method) for label, method in METHODS.items()
        }
        for trainer in table.trainers
    }
    columns = list(errors.values())
    means = {label: sum(each[label] for each in columns) / len(columns) for label in METHODS}
    return {ADAPTED: means, **errors}


def lowest(errors, n):
    best = sorted(errors, key=errors.get)[:n]
    return ", ".join(f"{label} {errors[label]:.2f}" for label in best)


def won(errors):
    """For how many trainers STS has the lowest ECE."""
    trainers = [each for label, each in errors.items() if label != ADAPTED]
    return f"{sum(min(each, key=each.get) == 'STS' for each in trainers)} of {len(trainers)}"


def paper_against_ours():
    """What the paper found beside what was measured here, on other data."""
    errors, remarks = zip(*(study(name) for name in STUDIES), strict=True)
    both = (papers(), *errors)
    raw = [each["MCC"]["Vanilla"] for each in both]
    tasks = [_STS.search(each).groups() for each in remarks]
    blind = [_BLIND.search(each).groups() for each in remarks]
    home = PUBLISHED["office-home"]
    columns = [{m: home.ece["cdan", task, m] for m in METHODS.values()} for task in home.tasks]
    best = sum(min(each, key=each.get) == "sts" for each in columns)
    same = sum(each["sac"] == each["ts"] for each in columns)
    sure = "the same, of the networks that are too sure on the target by 5 points more than on "
    rows = [
        ["lowest mean ECE over six trainers, and the next", *(lowest(e[ADAPTED], 2) for e in both)],
        ["trainers for which STS is the best", *map(won, both)],
        [
            "tasks on which it is, with CDAN",
            f"{best} of {len(columns)}",
            *(f"{n} of {all_}" for all_, n in tasks),
        ],
        [
            "SAC chose the clean set, and so is TS",
            f"{same} of {len(columns)}",
            *(_CLEAN.search(each)[1] for each in remarks),
        ],
        [f"{sure}the source", "not told", *(f"{n} of {all_}" for n, all_ in blind)],
        [
            "MCC: the raw softmax, and the best method",
            *(f"{value:.2f}, {lowest(e['MCC'], 1)}" for value, e in zip(raw, both, strict=True)),
        ],
    ]
    head = ["", "paper, its own data", "PACS", "Office-Caltech10", "digits"]
    return markdown(head, rows)


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


TABLES = {"controls": controls, "paper-against-ours": paper_against_ours}
