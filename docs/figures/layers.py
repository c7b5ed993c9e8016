"""Draw the path of the data, and the layers as the import contract in pyproject.toml has them."""

from __future__ import annotations

import textwrap
import tomllib
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH, LEFT, GAP, HEIGHT, MOST = 860, 44, 8, 58, 7
DOES = {
    "cli": "commands; the only place that prints",
    "studies": "plan to tables and figures",
    "report": "verdict and evidence on one page",
    "demo": "the whole job in a minute",
    "integrations": "Lightning, MLflow, others",
    "monitoring": "streams and alarms",
    "adaptation": "train on two domains",
    "export": "ONNX, PyTorch, sklearn",
    "estimates": "accuracy without labels",
    "performance": "metrics without labels",
    "grouping": "a choice per group",
    "plot": "pictures of numbers",
    "charts": "one look",
    "methods": "bank + unlabelled target: which map?",
    "surrogates": "labelled sets in order: the bank",
    "scoring": "a model over images, in resumable shards",
    "models": "images to logits",
    "datasets": "paths to images",
    "corruptions": "inputs, harder",
    "scores": "logits and labels",
    "scores_io": "their files",
    "maps": "logits to probs",
    "metrics": "ECE and others",
    "numerics": "pure arithmetic",
    "persistence": "save and load",
    "checks": "input validation",
    "files": "reading, atomic writes",
    "registry": "names to classes",
    "progress": "progress bar",
    "lazy": "import on use",
    "markup": "HTML, text",
    "types": "shared nouns",
    "errors": "exceptions",
}
COLOURS = ("#cfe3f5", "#d9dcf5", "#fbe3c0", "#f7d3cb", "#cfeadb", "#e4e4e4")
PATH = (
    "calibration images",
    "corrupted copies",
    "logits with labels: the bank",
    "fit: a map per set",
    "adapt: unlabelled logits choose",
    "confidences, row by row",
)
# Boxes have their own light fill and what is outside them is grey: legible on any page.
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1b1b1b; text-anchor: middle }
.name { font-size: 14px; font-weight: 600 }
.side { font-size: 13px; fill: #7a7a7a; text-anchor: start; font-style: italic }
.step { fill: #f4f4f4; stroke: #7a7a7a; stroke-width: 1.2 }
path { stroke: #7a7a7a; fill: none; stroke-width: 1.5 }
"""


def layers() -> list[list[str]]:
    """The packages from top to bottom, siblings in one row."""
    document = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text("utf-8"))
    rows = document["tool"]["importlinter"]["contracts"][0]["layers"]
    return [row.split(" : ") for row in rows if row != "__main__"]


def box(name: str, text: str, style: str, place: tuple[float, float, float]) -> str:
    """A rectangle with a name in bold and a few words below it."""
    x, y, width = place
    lines = [f'<tspan class="name">{name}</tspan>'] if name else []
    lines += map(escape, textwrap.wrap(text, max(8, int(width / 6.3))))
    top = y + HEIGHT / 2 + 12 - 7.5 * len(lines)
    rows = "".join(
        f'<text x="{x + width / 2:g}" y="{top + 15 * i:g}">{line}</text>'
        for i, line in enumerate(lines)
    )
    return (
        f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{HEIGHT}" rx="5"/>'
        f"{rows}"
    )


def drawn() -> str:
    """The picture as SVG."""
    y = 12.0
    parts = [f'<text class="side" x="{LEFT}" y="{y + 12:g}">the path of the data</text>']
    y += 20
    gap = 22
    width = (WIDTH - LEFT - 12 - gap * (len(PATH) - 1)) / len(PATH)
    for i, step in enumerate(PATH):
        x = LEFT + i * (width + gap)
        parts.append(box("", step, "step", (x, y, width)))
        if i:
            parts.append(
                f'<path d="M{x - gap + 3:g} {y + HEIGHT / 2:g}h{gap - 7}m-6 -5l6 5l-6 5"/>'
            )
    y += HEIGHT + 14
    parts.append(f'<text class="side" x="{LEFT}" y="{y + 12:g}">the layers</text>')
    y += 20
    first = y
    # A layer of many modules is drawn in two rows.
    lines = [
        (layer, part)
        for layer, row in enumerate(layers())
        for half in [len(row) if len(row) <= MOST else (len(row) + 1) // 2]
        for part in (row[:half], row[half:])
        if part
    ]
    for layer, row in lines:
        width = (WIDTH - LEFT - 12 - GAP * (len(row) - 1)) / len(row)
        for i, name in enumerate(row):
            parts.append(box(name, DOES[name], f"g{layer}", (LEFT + i * (width + GAP), y, width)))
        y += HEIGHT + GAP
    parts.append(f'<path d="M20 {first:g}V{y - GAP:g}m-6 -9l6 9l6 -9"/>')
    middle = (first + y) / 2 + 20
    parts.append(
        f'<text class="side" transform="translate(14 {middle:g}) rotate(-90)">imports</text>'
    )
    style = STYLE + "".join(f".g{i} {{ fill: {fill} }}\n" for i, fill in enumerate(COLOURS))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 4:g}">\n'
        f"<title>The path of the data and the layers of shiftcal</title>\n"
        f"<style>{style}</style>\n{body}\n</svg>\n"
    )


if __name__ == "__main__":
    (HERE / "layers.svg").write_text(drawn(), "utf-8")
