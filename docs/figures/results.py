"""What the page of results shows, from the committed runs of benchmarks/accuracy/studies.py.

A block stands on the page between ``<!-- table: STUDY/WHAT -->`` and ``<!-- end -->``: a
``table/NAME`` or a ``figure/NAME`` of the run. Run as a script this
draws the figures of the page; the text is written by tables.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
RUNS = DOCS.parent / "benchmarks" / "accuracy" / "results" / "studies"
DRAWN = DOCS / "figures" / "results"
PAGE = "results.md"
_FIGURE = re.compile(r"<!-- table: ([a-z0-9-]+)/figure/([a-z0-9-]+) -->")


def block(name):
    """The text of a block."""
    study, what = name.split("/", 1)
    kind, item = what.split("/")
    return {"table": table, "figure": figure}[kind](study, item)


def table(study, item):
    """The table of the run, without its title, which the page's heading says."""
    lines = (RUNS / study / "tables" / f"{item}.md").read_text("utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    return "\n".join(lines[first:]) + "\n"


def figure(study, item):
    told = json_of(study, f"figures/{item}.json")
    title = told["title"] or item
    return f"![{title}](figures/results/{study}-{item}.svg)\n"


def json_of(study, file):
    return json.loads((RUNS / study / file).read_text("utf-8"))


def drawn():
    """Study and name of every figure on the page."""
    return _FIGURE.findall((DOCS / PAGE).read_text("utf-8"))


def main() -> None:
    from shiftcal.report.figures import read_figure, write_figure

    DRAWN.mkdir(exist_ok=True)
    for old in DRAWN.glob("*.svg"):
        old.unlink()
    for study, item in drawn():
        data = read_figure(RUNS / study / "figures" / f"{item}.json")
        for file in write_figure(data, DRAWN, f"{study}-{item}"):
            if file.suffix != ".svg":
                file.unlink()


if __name__ == "__main__":
    main()
