"""The table of what corruptions do to a network's accuracy, from the committed results.

``TABLES`` is what ``tables.py`` takes.
"""

from __future__ import annotations

import statistics

from committed import load, markdown, percent


def effect_cell(draws, reference):
    """Mean over draws, and the reference in brackets where there is one."""
    beside = "" if reference is None else f" ({reference:.1f})"
    return f"{percent(statistics.fmean(draws))}{beside}"


def corruption_effect():
    found = load("corruptions")
    rows, off = [], []
    for name, levels in found["accuracy"].items():
        theirs = dict(
            zip((0, 2, 4), found["reference"].get(name.partition(" ")[0], ()), strict=False)
        )
        rows.append(
            [f"`{name}`", *(effect_cell(draws, theirs.get(i)) for i, draws in enumerate(levels))]
        )
        if "photos" not in name:
            off += [100 * statistics.fmean(levels[i]) - value for i, value in theirs.items()]
    head = ["corruption", *(f"severity {level}" for level in range(1, 6))]
    note = (
        f"Over the {len(off)} values that have a reference (procedural frost among them) the mean "
        f"difference is {statistics.fmean(off):+.1f} points, the mean absolute one "
        f"{statistics.fmean(abs(d) for d in off):.1f}, the largest {max(off, key=abs):+.1f}.\n"
    )
    return f"{markdown(head, rows)}\n{note}"


TABLES = {
    "corruption-effect": corruption_effect,
}
