"""Draw the layers of the package, as the import contract in pyproject.toml has them."""

from __future__ import annotations

import textwrap
import tomllib
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH, MARGIN, GAP, TALL, LOW = 760, 12, 8, 52, 34
# Heading of a group, its colour in light and in dark, and the first layer that belongs to it.
GROUPS = (
    ("seen by people", "#cfe3f5", "#1d4a6e", "cli"),
    ("decided for a target", "#fbe3c0", "#6b4a12", "monitoring"),
    ("from images to labelled sets", "#cfeadb", "#1c5a42", "weighting"),
    ("underneath", "#e4e4e4", "#474747", "_persistence"),
)
DOES = {
    "cli": "commands; the only place that prints",
    "demo": "the whole job in a minute, on digits",
    "studies": "a plan in, records, tables and figures out",
    "report": "what was measured, on a page",
    "plot": "numbers in, one picture out",
    "adaptation": "two domains to one network",
    "monitoring": "a stream in, confidences and events out",
    "grouping": "a choice for each group",
    "export": "a map in a model file",
    "cards": "what is known, told",
    "estimates": "bank + unlabelled target: how accurate is the model on it?",
    "methods": "bank + unlabelled target: which map is to be used?",
    "rehearsals": "surrogate sets drawn as if they were targets",
    "weighting": "features in, importance weights out",
    "surrogates": "labelled sets in order: the bank",
    "scoring": "a model run over images, corrupted or not, in shards",
    "maps": "logits + labels to a fitted map",
    "metrics": "confidences to numbers",
    "scores": "files of logits",
    "corruptions": "inputs, harder",
    "datasets": "paths to images",
    "models": "images to logits",
    "_persistence": "fitted objects as versioned JSON, and back",
    "_estimator": "the contract of scikit-learn",
    "numerics": "arithmetic: arrays in, numbers out",
    "_checks": "the only validation of input",
    "_framing": "images brought to one size",
    "_registry": "plug-ins",
    "_optional": "extras",
    "_files": "whole or none",
    "_markdown_text": "text",
    "_drawing": "colours",
    "_html": "escaping",
    "_types": "nouns that travel between stages",
    "errors": "every exception",
}
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1b1b1b; text-anchor: middle }
.name { font-size: 15px; font-weight: 600 }
.long { font-size: 12px; font-weight: 600 }
.side { font-size: 13px; fill: #4a4a4a; text-anchor: start; font-style: italic }
path { stroke: #4a4a4a; fill: none; stroke-width: 1.5 }
"""
DARK = """
text { fill: #f2f2f2 }
.side { fill: #c4c4c4 }
path { stroke: #c4c4c4 }
"""


def layers() -> list[list[str]]:
    """The packages from the top to the bottom, siblings in one row."""
    document = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text("utf-8"))
    found = document["tool"]["importlinter"]["contracts"][0]["layers"]
    return [row.split(" | ") for row in found if row != "__main__"]


def box(name: str, group: int, *, place: tuple[float, int], size: tuple[float, int]) -> str:
    """One package: its name, and what it does beside it or below."""
    (x, y), (width, height) = place, size
    middle = x + width / 2
    style = "long" if height == TALL and len(name) > 11 else "name"
    if height == LOW:
        lines = [f'<tspan class="{style}">{name}</tspan> {escape(DOES[name])}']
        top = y + 22
    else:
        does = textwrap.wrap(DOES[name], int(width / 6.2))
        lines = [f'<tspan class="{style}">{name}</tspan>', *map(escape, does)]
        top = y + 32 - 8 * len(does)
    inside = "".join(
        f'<text x="{middle:g}" y="{top + 15 * i}">{line}</text>' for i, line in enumerate(lines)
    )
    shape = f'<rect class="g{group}" x="{x:g}" y="{y}" width="{width:g}" height="{height}" rx="5"/>'
    return f"{shape}{inside}"


def drawn() -> str:
    """The picture, as SVG; it has its own colours for dark pages."""
    left, y, group, parts = 44, MARGIN, -1, []
    for row in layers():
        if group + 1 < len(GROUPS) and GROUPS[group + 1][3] in row:
            group += 1
            parts.append(f'<text class="side" x="{left}" y="{y + 14}">{GROUPS[group][0]}</text>')
            y += 22
        height = TALL if len(row) > 1 else LOW
        width = (WIDTH - MARGIN - left - GAP * (len(row) - 1)) / len(row)
        for i, name in enumerate(row):
            place = (left + i * (width + GAP), y)
            parts.append(box(name, group, place=place, size=(width, height)))
        y += height + GAP
    arrow = f"M20 {MARGIN + 8}V{y - GAP}m-6 -9l6 9l6 -9"
    label = f'<text class="side" transform="translate(14 {y // 2 + 60}) rotate(-90)">imports</text>'
    light, dark = (
        "".join(f".g{i} {{ fill: {g[column]} }}\n" for i, g in enumerate(GROUPS))
        for column in (1, 2)
    )
    style = f"{STYLE}{light}@media (prefers-color-scheme: dark) {{{DARK}{dark}}}\n"
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + MARGIN - GAP}">\n'
        f"<title>The layers of shiftcal</title>\n<style>{style}</style>\n"
        f'<path d="{arrow}"/>{label}\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    (HERE / "layers.svg").write_text(drawn(), "utf-8")
