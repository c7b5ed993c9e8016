"""Reports from facts: one offline HTML page, a Markdown text, or JSON. No number is computed here.

:func:`make_facts` computes the facts, :func:`write_report` writes them in the format of the suffix.
Charts are matplotlib's SVG, inline, in the colours of ``page.css``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shiftcal import charts
from shiftcal.errors import FileError, require
from shiftcal.files import atomic_write
from shiftcal.markup import bold, code, heading, inline, table_cell
from shiftcal.report.facts import MethodFacts, ReportFacts, SetFacts, make_facts
from shiftcal.report.verdict import Ranged, kept_words, percent

__all__ = ["make_facts", "render", "to_markdown", "write_report"]

# Rows of tables on the page; the JSON in it has all.
MOST_SHOWN = 100
# The colours of the light page; in the SVG they become the variables of the page, so that they
# change with it.
_COLOURS = {
    "ink": "#1b1f24", "muted": "#57606a", "grid": "#e6e9ed", "before": "#b34700",
    "after": "#0a58b8", "truth": "#116329", "rest": "#6e7781", "near": "#8a3ffc",
}  # fmt: skip
_NAMES = {colour: name for name, colour in _COLOURS.items()}
# Inches of the diagrams that stand side by side.
_SQUARE = (4.3, 3.7)
# More sets than these are not drawn; the nearest ones are.
_MOST_POINTS = 400


def write_report(facts: ReportFacts, path: str | os.PathLike[str]) -> Path:
    """Write the report atomically, in the format of the suffix: ``.html``, ``.md`` or ``.json``.

    Raises:
        FileError: If the suffix is another one, or the file cannot be written.
        MissingExtra: If it is HTML and jinja2 is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        text = json.dumps(facts.to_dict(), indent=1, allow_nan=False) + "\n"
    elif suffix in (".html", ".md"):
        text = to_markdown(facts) if suffix == ".md" else render(facts)
    else:
        raise FileError(f"{path} must end in .html, .md or .json, which chooses the format.")
    with atomic_write(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
    return Path(path)


def to_markdown(facts: ReportFacts) -> str:
    """The report as Markdown, with the sections of the page."""
    target, provenance, clean = facts.target, facts.provenance, facts.sets[0]
    main, labelled = facts.of(facts.method), target.accuracy is not None
    about = {
        "Target": f"{target.name}: {target.n:,} rows, {target.n_classes} classes",
        "Bank": f"{len(facts.sets)} sets; calibration set {clean.name}, {clean.n:,} rows",
        "Method": f"{main.name}: {main.choice}",
        "Mean confidence": percent(target.mean_confidence),
        "After calibration": percent(main.mean_confidence),
        "Accuracy by the labels": percent(target.accuracy),
        "Estimated accuracy": percent(facts.estimate),
        "Operating point": kept_words(facts.kept, facts.verdict),
    }
    again = {
        "Model": provenance.model or "unknown",
        "Date": provenance.date,
        "Seed": str(facts.judging.seed),
        "Versions": ", ".join(f"{name} {v}" for name, v in provenance.versions.items()),
    }
    methods = [
        [
            one.name,
            f"{one.selection.temperature:.3g}" if one.selection.temperature is not None else "–",
            f"{100 * one.mean_confidence:.2f}",
            percent(one.ece, 2, ""),
            percent(one.gap, 2, ""),
        ]
        for one in facts.methods
    ]
    classes = [
        [
            one.name,
            f"{one.n:,}",
            *map(percent, (one.share, one.clean_share, one.before, one.after, one.accuracy)),
            "–" if one.gap is None else f"{100 * one.gap.value:+.1f}",
        ]
        for one in facts.classes[:MOST_SHOWN]
    ]
    rows = [
        [one.name, one.predicted, one.label or "–", percent(one.before), percent(one.after)]
        for one in facts.rows
    ]
    sets = [
        [
            one.name + " (chosen)" * one.chosen,
            f"{one.n:,}",
            *map(percent, (one.mean_confidence, one.accuracy)),
            f"{one.temperature:.3g}",
            f"{one.distance:.4f}",
        ]
        for one in _nearest(facts)[:MOST_SHOWN]
    ]
    flags = (
        f"**{flag.code}** ({', '.join(flag.by)}): {' '.join(map(inline, flag.messages))}"
        for flag in facts.warnings
    )
    use = [heading("How to use this calibration", level=2), code(provenance.usage, language="sh")]
    blocks = [
        heading(facts.title, level=1),
        bold(facts.verdict.headline),
        inline(facts.verdict.reason),
        _bullets(map(inline, facts.verdict.advice)),
        heading("Facts", level=2),
        _bullets(f"{name}: {inline(value)}" for name, value in about.items()),
        heading("Limits", level=2),
        _bullets(flags) or "Nothing was flagged.",
        *(use if facts.verdict.use and provenance.usage else ()),
        heading("Methods", level=2),
        _table("method, T, confidence (%), ECE (points), gap (points)", methods),
        f"Gap: mean confidence minus {'' if labelled else 'estimated '}accuracy.",
        _bullets(f"{name}: missing. {inline(why)}" for name, why in facts.missing.items()),
        heading("By predicted class", level=2),
        _table("class, rows, share, clean share, before, after, accuracy, gap (points)", classes),
        heading("Most confident mistakes" if labelled else "Largest change of confidence", level=2),
        _table("row, predicted, correct, before, after", rows) if rows else "None.",
        heading("Sets of the bank", level=2),
        _table("set, rows, confidence, accuracy, T, distance", sets),
        heading("How to make this report again", level=2),
        code(provenance.command, language="sh") if provenance.command else "",
        _bullets(f"{name}: {inline(value)}" for name, value in again.items()),
        _bullets(f"{inline(name)}: `{d}` (SHA-256)" for name, d in provenance.files.items()),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _table(header: str, rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; the names of its columns are separated by commas."""
    names = header.split(", ")
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *(map(table_cell, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _nearest(facts: ReportFacts) -> list[SetFacts]:
    """The sets of the bank, the chosen and the nearest first."""
    return sorted(facts.sets, key=lambda one: (not one.chosen, not one.nearest, one.distance))


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def render(facts: ReportFacts) -> str:
    """The HTML page: complete in itself, for any browser, with or without scripts.

    Raises:
        MissingExtra: If jinja2 or matplotlib is not installed.
    """
    jinja2 = require("jinja2", extra="report", needed_by="a report in HTML")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    from markupsafe import Markup  # comes with jinja2

    environment.filters["data"] = lambda value, form: Markup(_number(value, form))
    style, script = _template("page.css"), _template("page.js")
    # JSON that cannot end the script element it is in.
    document = json.dumps(facts.to_dict(), separators=(",", ":"), allow_nan=False)
    document = document.translate({ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&"})
    kind = facts.verdict.kind
    page: str = environment.from_string(_template("page.html.j2")).render(
        facts=facts,
        main=facts.of(facts.method),
        style=style,
        script=script,
        # The page may show itself and run its own script, and nothing else.
        policy=(
            f"default-src 'none'; style-src '{_hash(style)}'; style-src-attr 'unsafe-inline'; "
            f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
        ),
        document=document,
        tone="open" if facts.verdict.unsupported else "good" if kind == "fine" else "bad",
        level=f"{100 * facts.judging.level:g}",
        version=version("shiftcal"),
        charts=_charts(facts),
        kept=kept_words(facts.kept, facts.verdict),
        sets=_nearest(facts),
        most=MOST_SHOWN,
    )
    return page


def _number(value: float | None, form: str) -> str:
    """A number as HTML that tables sort by; a dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    text = {
        "percent": f'{100 * value:.1f}<span class="unit">\u00a0%</span>',
        "hundredths": f"{100 * value:.1f}",
        "points": f"{100 * value:.2f}",
        "signed": f"{100 * value:+.1f}",
        "count": f"{value:,}",
        "fixed": f"{value:.4f}",
        "number": f"{value:.3g}",
    }[form]
    return f'<data value="{value}">{text}</data>'


def _template(name: str) -> str:
    return files("shiftcal.report").joinpath("templates", name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


class Chart(NamedTuple):
    """A drawing, and the words that replace it where it cannot be seen.

    Attributes:
        name: Unique on the page.
        title: What it is.
        description: What it shows, in a sentence.
        size: In units of the drawing.
        svg: Its elements, escaped.
    """

    name: str
    title: str
    description: str
    size: tuple[float, float]
    svg: str


def _charts(facts: ReportFacts) -> dict[str, Any]:
    """All charts of the page."""
    muted = ["axes.edgecolor", "axes.labelcolor"]
    muted += [f"{axis}tick.{part}" for axis in "xy" for part in ("color", "labelcolor")]
    colours = dict.fromkeys(muted, _COLOURS["muted"])
    colours |= {"text.color": _COLOURS["ink"], "grid.color": _COLOURS["grid"]}
    main = facts.of(facts.method)
    others = [one for one in facts.methods if one.name not in ("vanilla", main.name)]
    with charts.applied(colours, extra="report"):
        return {
            "overview": _overview(facts),
            "before": _reliability(facts.of("vanilla"), facts, colour="before"),
            "after": [(one, _reliability(one, facts, colour="after")) for one in (main, *others)],
            "kept": _kept(facts),
            "errors": _errors(facts),
            "ladder": _ladder(facts),
        }


def _axes(width: float, height: float) -> Any:
    figures = require("matplotlib.figure", extra="report", needed_by="a report in HTML")
    figure = figures.Figure(figsize=(width, height), layout="constrained", facecolor="none")
    axes = figure.add_subplot(facecolor="none")
    axes.grid(axis="y")
    return axes


def _chart(axes: Any, name: str, title: str, description: str) -> Chart:
    """The SVG of what was drawn, in the colours of the page."""
    text = charts.picture(axes.figure, "svg", salt=name).decode()
    text = text[text.index("<g id=") : text.rindex("</svg>")]
    text = re.sub(r"""<g id=["'][^>]*["'](/?)>""", r"<g\1>", text)
    text = re.sub(
        r"(fill|stroke): (#\w{6})",
        lambda found: f"{found[1]}: var(--{_NAMES.get(found[2], 'ink')})",
        text,
    )
    width, height = (round(72 * float(side), 1) for side in axes.figure.get_size_inches())
    return Chart(name, title, description, (width, height), re.sub(r"\n\s*", " ", text))


def _ranges(rows: Sequence[tuple[str, str, Ranged]], width: float, step: float, unit: str) -> Any:
    """Numbers with their intervals, in percent, below one another; a row has colour and label."""
    axes = _axes(width, 0.8 + step * len(rows))
    for y, (name, _, found) in enumerate(rows):
        colour = _COLOURS[name]
        if found.low is not None and found.high is not None:
            ends = [100 * found.low, 100 * found.high]
            style = {"linewidth": 2.5, "alpha": 0.85, "solid_capstyle": "round"}
            axes.plot(ends, [y, y], color=colour, **style)
        axes.plot([100 * found.value], [y], "o", color=colour, markersize=7)
    axes.set_yticks(range(len(rows)), [label for _, label, _ in rows])
    axes.tick_params(axis="y", length=0)
    axes.set(ylim=(len(rows) - 0.4, -0.6), xlabel=unit)
    axes.spines["left"].set_visible(False)
    return axes


def _overview(facts: ReportFacts) -> Chart:
    """Mean confidence before and after calibration, and the accuracy."""
    after = Ranged(facts.of(facts.method).mean_confidence)
    named = [
        ("before", "mean confidence", Ranged(facts.target.mean_confidence)),
        ("truth", "accuracy, by the labels", facts.target.accuracy),
        ("truth", "accuracy, estimated", facts.estimate),
        ("after", f"mean confidence after {facts.method}", after),
    ]
    rows = [(colour, label, found) for colour, label, found in named if found]
    axes = _ranges(rows, 4.3, 0.45, "percent")
    words = [f"{label}: {percent(found)}" for _, label, found in rows]
    for y, text in enumerate(words):
        axes.text(0, y - 0.28, text, weight="bold")
    axes.set(xlim=(0, 101), ylim=(len(rows) - 0.5, -0.75), yticks=[])
    return _chart(axes, "overview", "Mean confidence and accuracy", f"{'; '.join(words)}.")


def _errors(facts: ReportFacts) -> Chart:
    """ECE of every method with labels, else confidence minus estimated accuracy."""
    labelled = facts.target.accuracy is not None
    colours = {"vanilla": "before", facts.method: "after"}
    rows = [(colours.get(one.name, "rest"), one.name, one.ece or one.gap) for one in facts.methods]
    unit = f"{'ECE' if labelled else 'confidence − estimated accuracy'} (points)"
    axes = _ranges(rows, 4.9, 0.34, unit)
    axes.axvline(0, color=_COLOURS["ink"], linewidth=0.8)
    if labelled:
        axes.set_xlim(left=0)
    best = min(rows, key=lambda row: abs(row[2].value))[1]
    text = f"{len(rows)} methods; nearest to zero is {best}."
    return _chart(axes, "errors", f"{unit} of every method", text)


def _reliability(method: MethodFacts, facts: ReportFacts, *, colour: str) -> Chart:
    """The reliability diagram of one method; the colour is ``"before"`` or ``"after"``."""
    axes = _axes(*_SQUARE)
    x, y, low, high = (
        100 * np.array(method.bins[name], np.float64)
        for name in ("confidence", "accuracy", "low", "high")
    )
    charts.draw_bins(axes, x, y, low, high, charts.Look(_COLOURS[colour], "o"), end=100.0)
    edges = np.linspace(0, 100, len(method.shares) + 1)
    charts.draw_strip(axes, np.array(method.shares), edges, _COLOURS[colour])
    axes.set(xlabel="confidence (%); below: share of rows", ylabel="accuracy (%)")
    above, filled = np.count_nonzero(x > y), np.count_nonzero(np.isfinite(x))
    name, title = f"reliability-{colour}-{method.name}", f"Reliability of {method.name}"
    text = f"{filled} bins of {facts.shown}; in {above} confidence is above accuracy."
    return _chart(axes, name, title, text)


def _kept(facts: ReportFacts) -> Chart:
    """Accuracy of the most confident rows over their share: expected, by raw, and measured."""
    axes, kept = _axes(*_SQUARE), facts.kept
    x = 100 * np.array(kept.shares)
    lines = [("before", "raw confidence", kept.raw)]
    if kept.by != "vanilla":
        lines.append(("after", f"confidence after {kept.by}", kept.expected))
    if kept.measured is not None:
        lines.append(("truth", "accuracy, by the labels", kept.measured))
    for name, label, y in lines:
        axes.plot(x, 100 * np.array(y), color=_COLOURS[name], linewidth=1.8, label=label)
    axes.axhline(100 * kept.goal, color=_COLOURS["rest"], linewidth=0.8, linestyle=(0, (1, 2)))
    words = "no operating point"
    if kept.threshold is not None:
        style = {"color": _COLOURS["before" if kept.by == "vanilla" else "after"], "zorder": 4}
        axes.plot([100 * kept.share], [100 * kept.goal], "o", markersize=8, **style)
        words = f"{percent(kept.share)} of the rows kept at {percent(kept.goal, 0)}"
        right = kept.share < 0.4
        axes.annotate(
            f"keep {percent(kept.share, 0)}",
            (100 * kept.share, 100 * kept.goal),
            xytext=(8 if right else -6, 6 if right else -12),
            textcoords="offset points",
            ha="left" if right else "right",
        )
    low = min(min(y) for _, _, y in lines)
    axes.set(xlim=(0, 102), ylim=(min(100 * low - 2, 88), 101))
    axes.set(xlabel="rows kept, most confident first (%)", ylabel="accuracy of the rows kept (%)")
    axes.legend(loc="lower left")
    return _chart(axes, "kept", "Accuracy of the most confident rows", f"{words}.")


def _ladder(facts: ReportFacts) -> Chart:
    """Every set by confidence and temperature, and the target with the temperature it gets."""
    axes = _axes(4.9, 3.9)
    mean, selection = facts.target.mean_confidence, facts.of(facts.method).selection
    marked = next((one for one in facts.sets if one.chosen), None)
    marked = marked or next(one for one in facts.sets if one.nearest)
    others = sorted(facts.sets, key=lambda one: one.distance)[:_MOST_POINTS]
    for name, size, label, shown in (
        ("rest", 5, "sets of the bank", others),
        ("near", 8, "chosen" if marked.chosen else "nearest", [marked]),
    ):
        x, y = zip(*((100 * one.mean_confidence, one.temperature) for one in shown), strict=True)
        axes.plot(x, y, "o", color=_COLOURS[name], markersize=size, label=label)
    charts.draw_target(axes, selection, 100 * mean, _COLOURS["after"])
    charts.mark_temperatures(axes)
    axes.set(xlabel="mean raw confidence (%)", ylabel="temperature T")
    axes.figure.legend(loc="outside upper left", ncols=3)
    text = f"{len(facts.sets)} sets; the target's mean confidence is {percent(mean)}."
    return _chart(axes, "ladder", "Sets of the bank by confidence and temperature", text)
