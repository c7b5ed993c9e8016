"""The charts of the HTML report: matplotlib's SVG, inline, in the colours of ``page.css``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shiftcal import charts
from shiftcal.errors import require
from shiftcal.numerics.samples import DIGITS, stretch
from shiftcal.report.facts import MethodFacts, Ranged, ReportFacts, Shown
from shiftcal.report.verdict import percent, ranged

# The colours of the light page; in the SVG they become the variables of the page, so that they
# change with it.
_COLOURS = {
    "ink": "#1b1f24", "muted": "#57606a", "grid": "#e6e9ed", "before": "#b34700",
    "after": "#0a58b8", "truth": "#116329", "rest": "#6e7781", "near": "#8a3ffc",
    "target": "#9a6700",
}  # fmt: skip
_NAMES = {colour: name for name, colour in _COLOURS.items()}
# More sets than these are not drawn; the nearest ones are.
_MOST_POINTS = 400
_TIP = "tip:"
_TICKS = ("color", "labelcolor")


@dataclass(frozen=True)
class Chart:
    """A drawing, and the words and the table that replace it where it cannot be seen.

    Attributes:
        name: Unique on the page.
        title: What it is.
        description: What it shows, in a sentence.
        size: In units of the drawing.
        svg: Its elements, escaped.
        header: Of the table with the same numbers.
        rows: Of that table.
    """

    name: str
    title: str
    description: str
    size: tuple[float, float]
    svg: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def _svg(
    name: str, size: tuple[float, float], draw: Callable[[Any], None]
) -> tuple[tuple[float, float], str]:
    """Size and elements of a chart; an artist whose id is a tip shows it when pointed at."""
    figures = require("matplotlib.figure", extra="report", needed_by="a report in HTML")
    colours = {f"axes.{part}color": _COLOURS["muted"] for part in ("edge", "label")}
    colours |= {f"{axis}tick.{part}": _COLOURS["muted"] for axis in "xy" for part in _TICKS}
    colours |= {"text.color": _COLOURS["ink"], "grid.color": _COLOURS["grid"]}
    with charts.applied({**colours, "svg.hashsalt": name}, extra="report"):
        figure = figures.Figure(figsize=size, layout="constrained", facecolor="none")
        draw(figure.add_subplot(facecolor="none"))
        text = charts.picture(figure, "svg").decode()
    text = text[text.index("<g id=") : text.rindex("</svg>")]
    text = re.sub(rf"""<g id=["']{_TIP}([^>]*)["']>""", r"<g><title>\1</title>", text)
    text = re.sub(r"""<g id=["'][^>]*["'](/?)>""", r"<g\1>", text)
    text = re.sub(
        r"(fill|stroke): (#\w{6})",
        lambda found: f"{found[1]}: var(--{_NAMES.get(found[2], 'ink')})",
        text,
    )
    return (round(72 * size[0], 1), round(72 * size[1], 1)), re.sub(r"\n\s*", " ", text)


def _draw_range(axes: Any, found: Ranged, y: float, colour: str, tip: str) -> None:
    """A value and its interval, in percent, on a horizontal line."""
    if found.low is not None and found.high is not None:
        style = {"linewidth": 2.5, "alpha": 0.85, "color": _COLOURS[colour]}
        axes.plot([100 * found.low, 100 * found.high], [y, y], solid_capstyle="round", **style)
    axes.plot([100 * found.value], [y], "o", color=_COLOURS[colour], markersize=7, gid=_TIP + tip)


def overview(facts: ReportFacts) -> Chart:
    """Mean confidence before and after calibration, and the accuracy."""
    rows = [("before", "mean confidence", Ranged(facts.target.mean_confidence))]
    if facts.target.accuracy is not None:
        rows.append(("truth", "accuracy, by the labels", facts.target.accuracy))
    if facts.estimate is not None:
        estimate = Ranged(facts.estimate.value, facts.estimate.low, facts.estimate.high)
        rows.append(("truth", "accuracy, estimated", estimate))
    after = Ranged(facts.of(facts.method).mean_confidence)
    rows.append(("after", f"mean confidence after {facts.method}", after))
    words = [f"{label}: {ranged(found, 1)}\u00a0%" for _, label, found in rows]

    def draw(axes: Any) -> None:
        for y, ((colour, _, found), text) in enumerate(zip(rows, words, strict=True)):
            _draw_range(axes, found, y, colour, text)
            axes.text(0, y - 0.28, text, weight="bold")
        axes.set(xlim=(0, 101), ylim=(len(rows) - 0.5, -0.75), xlabel="percent", yticks=[])
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)

    return Chart(
        "overview",
        "Mean confidence and accuracy",
        "; ".join(words) + ".",
        *_svg("overview", (4.3, 0.7 + 0.45 * len(rows)), draw),
    )


def reliability(method: MethodFacts, shown: Shown, *, colour: str) -> Chart:
    """The reliability diagram of one method; the colour is ``"before"`` or ``"after"``."""
    filled = [one for one in method.bins if one.count]
    above = sum(one.confidence > one.accuracy for one in filled)  # type: ignore[operator]

    def draw(axes: Any) -> None:
        names = ("confidence", "accuracy", "low", "high")
        x, y, low, high = (
            100 * np.array([getattr(one, name) for one in filled], np.float64) for name in names
        )
        charts.draw_bins(axes, x, y, low, high, charts.Look(_COLOURS[colour], "o"), end=100.0)
        edges = np.linspace(0, 100, len(method.shares) + 1)
        charts.draw_strip(axes, np.array(method.shares), edges, _COLOURS[colour])
        axes.set(xlabel="confidence (%); at the bottom: share of rows", ylabel="accuracy (%)")
        axes.grid(axis="y")

    name = f"reliability-{colour}-{method.name}"
    rows = []
    for one in method.bins:
        cells = ("-", "-")
        if one.confidence is not None and one.accuracy is not None:
            found = Ranged(one.accuracy, one.low, one.high)
            cells = f"{100 * one.confidence:.1f}", ranged(found, 1)
        rows.append((f"{100 * one.lower:.1f} to {100 * one.upper:.1f}", *cells, f"{one.count:,}"))
    return Chart(
        name,
        f"Reliability of {method.name}",
        f"{len(filled)} bins of {shown.name}; in {above} of them confidence is above accuracy.",
        *_svg(name, (4.9, 4.6), draw),
        ("confidence", "mean (%)", "accuracy (%)", "rows"),
        tuple(rows),
    )


def errors(facts: ReportFacts) -> Chart | None:
    """ECE of every method with labels, else confidence minus estimated accuracy."""
    labelled = facts.target.accuracy is not None
    pairs = [(one.name, one.ece if labelled else one.gap) for one in facts.methods]
    known = [(name, found) for name, found in pairs if found is not None]
    if not known:
        return None
    what = f"{'ECE' if labelled else 'confidence − estimated accuracy'} (points)"

    def draw(axes: Any) -> None:
        axes.axvline(0, color=_COLOURS["ink"], linewidth=0.8)
        for y, (name, found) in enumerate(known):
            colour = {"vanilla": "before", facts.method: "after"}.get(name, "rest")
            _draw_range(axes, found, y, colour, f"{name}: {ranged(found, 2)} points")
        axes.set(ylim=(len(known) - 0.4, -0.6), xlabel=what)
        axes.set_yticks(range(len(known)), [name for name, _ in known])
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)
        if labelled:
            axes.set_xlim(left=0)

    best = min(known, key=lambda pair: abs(pair[1].value))[0]
    return Chart(
        "errors",
        f"{what} of every method",
        f"{len(known)} methods; nearest to zero is {best}.",
        *_svg("errors", (4.9, 0.8 + 0.34 * len(known)), draw),
    )


def ladder(facts: ReportFacts) -> Chart:
    """Every set by confidence and temperature, and the target with the temperature it gets."""
    method = facts.of(facts.method)
    mean = facts.target.mean_confidence
    any_chosen = any(one.chosen for one in facts.sets)
    drawn = sorted(facts.sets, key=lambda one: (one.chosen, one.nearest, -one.distance))
    drawn = drawn[-_MOST_POINTS:]

    def draw(axes: Any) -> None:
        for one in drawn:
            marked = one.chosen if any_chosen else one.nearest
            tip = (
                f"{one.name}: confidence {percent(one.mean_confidence)}, accuracy "
                f"{percent(one.accuracy)}, T = {one.temperature:.3g}"
            )
            axes.plot(
                [100 * one.mean_confidence],
                [one.temperature],
                "o",
                color=_COLOURS["near" if marked else "rest"],
                markersize=8 if marked else 5,
                gid=_TIP + tip,
                label=("chosen" if any_chosen else "nearest") if marked else "sets of the bank",
            )
        ends = None
        if method.temperature_low is not None and method.temperature_high is not None:
            ends = method.temperature_low, method.temperature_high
        label = "" if method.temperature is None else f"target: T = {method.temperature:.3g}"
        colour = _COLOURS["after"]
        charts.draw_target(axes, 100 * mean, method.temperature, ends, colour, label=label)
        every = [one.temperature for one in drawn]
        charts.mark_temperatures(axes, [*every, method.temperature or every[0]])
        axes.set(xlabel="mean raw confidence (%)", ylabel="temperature T")
        axes.grid(axis="y")
        _legend(axes)

    return Chart(
        "ladder",
        "Sets of the bank and the target",
        f"{len(facts.sets)} sets by mean confidence and temperature; the target's mean confidence "
        f"is {percent(mean)}.",
        *_svg("ladder", (4.9, 3.9), draw),
    )


def _legend(axes: Any) -> None:
    """Every label once, above the axes."""
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    axes.figure.legend(once.values(), once.keys(), loc="outside upper left", ncols=3)


def densities(facts: ReportFacts) -> Chart:
    """Densities of raw confidence: the target over the sets of the bank nearest to it."""
    shown = facts.densities
    mean = facts.target.mean_confidence
    sets = [facts.sets[position] for position, _ in shown.sets]

    def place(confidence: Any) -> Any:
        values = np.asarray(confidence)
        return np.minimum(stretch(values), DIGITS) if shown.stretched else 100 * values

    def draw(axes: Any) -> None:
        x = place(shown.grid)
        for one, (_, y) in reversed(list(zip(sets, shown.sets, strict=True))):
            near = one is sets[0]
            axes.plot(
                x,
                y,
                color=_COLOURS["near" if near else "rest"],
                linewidth=2 if near else 0.9,
                gid=f"{_TIP}{one.name}: mean {percent(one.mean_confidence)}",
                label=("chosen set" if one.chosen else "nearest set") if near else "other sets",
            )
        style: dict[str, Any] = {"gid": f"{_TIP}the target: mean {percent(mean)}", "linewidth": 2}
        colour, target = _COLOURS["target"], "target"
        charts.draw_density(
            axes, x, shown.target, float(place(mean)), colour, fill=True, label=target, **style
        )
        axes.set(xlim=(x[0], x[-1]), yticks=[], xlabel="raw confidence (%)")
        axes.set_ylim(bottom=0)
        axes.spines["left"].set_visible(False)
        if shown.stretched:
            charts.mark_stretched(axes, [0, 0.9, 0.99, 0.999, 0.9999, 0.99999], percent=True)
        _legend(axes)

    return Chart(
        "densities",
        "Raw confidence of the target and of surrogate sets",
        f"Densities of raw confidence of the target and of {len(sets)} sets of the bank.",
        *_svg("densities", (4.9, 3.9), draw),
    )
