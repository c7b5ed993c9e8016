"""Tables of the page on other inputs, from the committed results.

Run as a script this renews that page; ``TABLES`` is what ``tables.py`` takes.
"""

from __future__ import annotations

import json
import re
import statistics
from functools import partial
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
RESULTS = DOCS.parent / "benchmarks" / "accuracy" / "results" / "other_inputs.json"
METHODS = {
    "vanilla": "Vanilla",
    "ts": "TS",
    "ace": "ACE",
    "cpcs": "CPCS",
    "transcal": "TransCal",
    "sts": "STS",
    "sac": "SAC",
    "rehearsal": "Rehearsal",
    "oracle": "Oracle",
}
SHIFTS = {
    "none": "none",
    "noise": "noise",
    "missing_values": "missing values",
    "category_swaps": "swaps",
    "drift": "drift",
    "typos": "typos",
    "dropped_words": "dropped words",
    "other wording": "other wording",
}
_MARKED = re.compile(r"(<!-- table: (other-inputs[a-z-]*) -->\n).*?(<!-- end -->)", re.DOTALL)


def load():
    return json.loads(RESULTS.read_text("utf-8"))["records"]


def markdown(head, rows):
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "".join("| " + " | ".join(row) + " |\n" for row in (head, rule, *rows))


def ece(record, method):
    return (record["oracle"] if method == "oracle" else record["methods"][method])["ece"]


def mean(records, method):
    """Mean ECE over splits and severities."""
    return statistics.fmean(ece(record, method) for record in records)


def error(records, method):
    """Standard error of that mean over splits: severities of a split have a model in common."""
    by_split = {record["split"]: [] for record in records}
    for record in records:
        by_split[record["split"]].append(ece(record, method))
    means = [statistics.fmean(found) for found in by_split.values()]
    return statistics.stdev(means) / len(means) ** 0.5


def percent(value):
    return f"{100 * value:.1f}"


def one_task(name):
    """Mean ECE in percent of every method on every shift, with its standard error."""
    records = load()[name]
    by_shift = {
        shift: found
        for shift in SHIFTS
        if (found := [record for record in records if record["shift"] == shift])
    }
    rows = []
    for method, label in METHODS.items():
        cells = []
        for found in by_shift.values():
            best = min(mean(found, other) for other in METHODS if other != "oracle")
            cell = f"{percent(mean(found, method))} ± {percent(error(found, method))}"
            cells.append(f"**{cell}**" if mean(found, method) == best else cell)
        rows.append([label, *cells])
    for label, value in (
        ("*accuracy*", lambda r: r["oracle"]["accuracy"]),
        ("*mean confidence*", lambda r: r["methods"]["vanilla"]["mean_confidence"]),
        ("*ECE of a perfect model*", lambda r: r["floor"]),
    ):
        rows.append([label, *(percent(statistics.fmean(map(value, f))) for f in by_shift.values())])
    return markdown([name, *(SHIFTS[shift] for shift in by_shift)], rows)


def overview():
    """Mean ECE in percent over all shifted targets of a model."""
    tasks = load()
    head = ["", *(label for name, label in METHODS.items() if name != "oracle"), "Oracle"]
    rows = []
    for task, records in tasks.items():
        shifted = [record for record in records if record["shift"] != "none"]
        found = {method: mean(shifted, method) for method in METHODS}
        best = min(value for method, value in found.items() if method != "oracle")
        cells = (f"**{percent(v)}**" if v == best else percent(v) for v in found.values())
        rows.append([task, *cells])
    return markdown(head, rows)


def slug(task):
    return re.sub(r"[^a-z]+", "-", task.lower())


TABLES = {
    "other-inputs": overview,
    **{f"other-inputs-{slug(task)}": partial(one_task, task) for task in load()},
}


def renewed(page):
    """The text of the page with every marked table written anew."""
    return _MARKED.sub(lambda m: f"{m[1]}\n{TABLES[m[2]]()}\n{m[3]}", page)


def main() -> None:
    path = DOCS / "other-inputs.md"
    path.write_text(renewed(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
