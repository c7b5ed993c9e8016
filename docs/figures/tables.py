"""Write the tables of the docs: committed results of benchmarks/accuracy, recipes of trainers.

A table stands on its page between ``<!-- table: name -->`` and ``<!-- end -->``. Run as a script
this renews all of them; a test asks that they are what the results say.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path

from shiftcal import adaptation

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS / "figures"))
import adaptation_tables  # noqa: E402
import beyond_tables  # noqa: E402
import corruption_tables  # noqa: E402
import digits_tables  # noqa: E402
import groups_tables  # noqa: E402
import metrics_tables  # noqa: E402
import monitor_tables  # noqa: E402
import other_inputs_tables  # noqa: E402
import speed_tables  # noqa: E402
from committed import markdown  # noqa: E402

TRAINERS = adaptation.names()
PAGES = (
    *("accuracy.md", "banks.md", "choose.md", "corruptions.md", "metrics.md", "research.md"),
    *("results.md", "scale.md", "groups.md", "monitoring.md", "other-inputs.md"),
    *(f"adaptation/{name}.md" for name in (*TRAINERS, "index", "calibrate")),
)
# Settings of a training that every trainer's table shows.
SHOWN = ("iterations", "batch_size", "lr", "lr_gamma", "weight_decay", "backbone_lr", "bottleneck")
_MARKED = re.compile(r"(<!-- table: ([a-z0-9/-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def recipes(name):
    """Settings and options of a trainer by recipe; what is alike in all and usual is left out."""
    kind = adaptation.get(name)
    prepared = {"default": kind.prepared(), **{r: kind.prepared(r) for r in kind.recipes}}
    values = {r: {**s.to_dict(), **t.to_dict()} for r, (t, s) in prepared.items()}
    usual = adaptation.Settings().to_dict()
    own = {field.name for field in fields(kind)}

    def is_shown(setting):
        found = {repr(each[setting]) for each in values.values()}
        other = setting not in own and repr(usual[setting]) not in found
        return setting in SHOWN or len(found) > 1 or other

    def cell(value):
        return f"{value:,}" if type(value) is int else str(value)

    rows = [
        [f"`{setting}`", *(cell(each[setting]) for each in values.values())]
        for setting in values["default"]
        if is_shown(setting)
    ]
    return markdown(["", *(f"`{r}`" for r in values)], rows)


TABLES = {
    **adaptation_tables.TABLES,
    **beyond_tables.TABLES,
    **corruption_tables.TABLES,
    **digits_tables.TABLES,
    **groups_tables.TABLES,
    **metrics_tables.TABLES,
    **monitor_tables.TABLES,
    **other_inputs_tables.TABLES,
    **speed_tables.TABLES,
    **{f"recipes-{name}": partial(recipes, name) for name in TRAINERS},
}


def renewed(text):
    """The text of a page with every marked table written anew."""
    return _MARKED.sub(lambda m: f"{m[1]}\n{written(m[2])}\n{m[3]}", text)


def written(name):
    """One table; a name with a slash is a block of the page of results."""
    if "/" not in name:
        return TABLES[name]()
    from results import block

    return block(name)


def main() -> None:
    for page in PAGES:
        path = DOCS / page
        path.write_text(renewed(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
