"""Tables of the page on groups, from the committed results.

Run as a script this renews that page; ``TABLES`` is what ``tables.py`` takes.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
RESULTS = DOCS.parent / "benchmarks" / "accuracy" / "results" / "groups.json"
ROWS = {
    "global": "one choice for all rows",
    "own": "each group its own",
    "shrunk": "**each group its own, shrunk**",
    "oracle": "each group its best, by labels",
}
SIZES = {
    "20": "20 rows",
    "50": "50 rows",
    "200": "200 rows",
    "2000": "2,000 rows",
    "20 and 2000": "20 and 2,000 rows",
    "all": "all",
}
METHODS = {"sac": "SAC", "rehearsal": "Rehearsal"}


def load():
    return json.loads(RESULTS.read_text("utf-8"))


def markdown(head, rows):
    lines = [head, [":--", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def errors(kind, what):
    """Mean ECE in percent, of every method and size of groups."""
    found = load()["ece"]
    rows = [
        [
            f"{label}: {text}",
            *(f"{100 * found[method][kind][size][what][row]:.2f}" for size in SIZES),
        ]
        for method, label in METHODS.items()
        for row, text in ROWS.items()
    ]
    return markdown(["", *SIZES.values()], rows)


def times():
    """Milliseconds a group."""
    found = load()["timed"]["milliseconds"]
    rows = [[METHODS[name], f"{value:.1f} ms"] for name, value in found.items()]
    return markdown(["method", "a group"], rows)


TABLES = {
    "groups-mixed": partial(errors, "mixed", "each"),
    "groups-mixed-together": partial(errors, "mixed", "together"),
    "groups-alike": partial(errors, "alike", "each"),
    "groups-times": times,
}


def renewed(text):
    """A page with its tables as the results say."""
    marked = re.compile(r"(<!-- table: (\S+) -->\n)(?:.*?)(<!-- end -->)", re.DOTALL)
    return marked.sub(lambda m: f"{m[1]}\n{TABLES[m[2]]()}\n{m[3]}", text)


if __name__ == "__main__":
    page = DOCS / "groups.md"
    page.write_text(renewed(page.read_text("utf-8")), "utf-8")
