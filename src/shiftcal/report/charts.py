"""The charts of the HTML report as SVG. Colours come from the classes in ``page.css``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from shiftcal.numerics.samples import DIGITS, stretch
from shiftcal.report.facts import MethodFacts, Ranged, ReportFacts, Shown
from shiftcal.report.verdict import percent

_WIDTH = 440
_PERCENTS = [(value / 100, str(value)) for value in range(0, 101, 20)]
# More sets than these are not drawn; the nearest ones are.
_MOST_POINTS = 400


@dataclass(frozen=True)
class Chart:
    """A drawing, and the words and the table that replace it where it cannot be seen.

    Attributes:
        name: Unique on the page.
        title: What it is.
        description: What it shows, in a sentence.
        width: In units of the drawing.
        height: The same.
        svg: Its elements, escaped.
        header: Of the table with the same numbers.
        rows: Of that table.
        key: What colours mean: class and words.
    """

    name: str
    title: str
    description: str
    width: int
    height: int
    svg: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    key: tuple[tuple[str, str], ...] = ()


class _Axes:
    """A rectangle with two scales, and the elements drawn in it."""

    def __init__(
        self,
        box: tuple[float, float, float, float],
        x_range: tuple[float, float] = (0.0, 1.0),
        y_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.left, self.top, self.right, self.bottom = box
        self.x_range, self.y_range = x_range, y_range
        self.elements: list[str] = []

    @property
    def svg(self) -> str:
        return "\n".join(self.elements)

    def x(self, value: float) -> float:
        low, high = self.x_range
        return round(self.left + (value - low) / (high - low) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return round(self.bottom - (value - low) / (high - low) * (self.bottom - self.top), 1)

    def add(self, tag: str, css: str, *, tip: str = "", text: str = "", **at: object) -> None:
        attributes = "".join(f' {name}="{escape(str(value))}"' for name, value in at.items())
        title = f"<title>{escape(tip)}</title>" if tip else ""
        self.elements.append(f'<{tag} class="{css}"{attributes}>{title}{escape(text)}</{tag}>')

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str) -> None:
        self.add("line", css, x1=x1, y1=y1, x2=x2, y2=y2)

    def text(self, x: float, y: float, words: str, css: str) -> None:
        self.add("text", css, text=words, x=round(x, 1), y=round(y, 1))

    def dot(self, x: float, y: float, css: str, tip: str, r: float = 4.5) -> None:
        self.add("circle", f"mark {css}", tip=tip, cx=x, cy=y, r=r)

    def path(self, points: Iterable[tuple[float, float]], css: str, tip: str = "") -> None:
        self.add("path", css, tip=tip, d="M" + " L".join(f"{x:g} {y:g}" for x, y in points))

    def x_axis(self, ticks: Sequence[tuple[float, str]], label: str) -> None:
        self.line(self.left, self.bottom, self.right, self.bottom, "axis")
        for value, words in ticks:
            self.line(self.x(value), self.bottom, self.x(value), self.bottom + 4, "axis")
            self.text(self.x(value), self.bottom + 17, words, "tick middle")
        self.text((self.left + self.right) / 2, self.bottom + 34, label, "label middle")

    def y_axis(self, ticks: Sequence[tuple[float, str]], label: str) -> None:
        for value, words in ticks:
            self.line(self.left, self.y(value), self.right, self.y(value), "grid")
            self.text(self.left - 6, self.y(value) + 4, words, "tick end")
        self.text(2, self.top - 10, label, "label")

    def ranged(self, found: Ranged, y: float, css: str, tip: str, r: float) -> None:
        """A horizontal grid line with a value and its interval on it."""
        self.line(self.left, y, self.right, y, "grid")
        if found.low is not None and found.high is not None:
            self.line(self.x(found.low), y, self.x(found.high), y, f"range {css}")
        self.dot(self.x(found.value), y, css, tip, r)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers within a range, at steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _points(found: Ranged, digits: int) -> str:
    """A fraction and its interval in percent, without the sign."""
    value = f"{100 * found.value:.{digits}f}"
    if found.low is None or found.high is None:
        return value
    return f"{value} ({100 * found.low:.{digits}f} to {100 * found.high:.{digits}f})"


def overview(facts: ReportFacts) -> Chart:
    """Mean confidence before and after calibration, and the accuracy."""
    rows = [("before", "mean confidence", Ranged(facts.target.mean_confidence))]
    if facts.target.accuracy is not None:
        rows.append(("truth", "accuracy, by the labels", facts.target.accuracy))
    if facts.estimate is not None:
        estimate = Ranged(facts.estimate.value, facts.estimate.low, facts.estimate.high)
        rows.append(("guess", "accuracy, estimated", estimate))
    after = Ranged(facts.of(facts.method).mean_confidence)
    rows.append(("after", f"mean confidence after {facts.method}", after))
    axes = _Axes((8, 8, 336, 8 + 38 * len(rows)))
    axes.x_axis(_PERCENTS, "percent")
    words = [f"{label}: {_points(found, 1)}\u00a0%" for _, label, found in rows]
    for i, (css, _, found) in enumerate(rows):
        axes.ranged(found, 34 + 38 * i, css, words[i], 6)
        axes.text(axes.left, 22 + 38 * i, words[i], "direct")
    return Chart(
        "overview",
        "Mean confidence and accuracy",
        "; ".join(words) + ".",
        350,
        round(axes.bottom + 42),
        axes.svg,
        ("what", "percent"),
        tuple((label, _points(found, 1)) for _, label, found in rows),
    )


def reliability(method: MethodFacts, shown: Shown, *, css: str) -> Chart:
    """The reliability diagram of one method; ``css`` is ``"before"`` or ``"after"``."""
    axes = _Axes((44, 28, 426, 368))
    axes.y_axis(_PERCENTS, "accuracy (%)")
    axes.x_axis(_PERCENTS, "confidence (%)")
    axes.line(axes.x(0), axes.y(0), axes.x(1), axes.y(1), "ideal")
    rows, above, filled = [], 0, 0
    for one in method.bins:
        span = f"{100 * one.lower:.1f} to {100 * one.upper:.1f}"
        if one.confidence is None or one.accuracy is None or one.low is None or one.high is None:
            rows.append((span, "-", "-", "-", "0"))
            continue
        filled += 1
        above += one.confidence > one.accuracy
        x, y = axes.x(one.confidence), axes.y(one.accuracy)
        axes.line(x, y, x, axes.y(one.confidence), f"gap {css}")
        axes.line(x, axes.y(one.low), x, axes.y(one.high), f"range {css}")
        confidence, accuracy = f"{100 * one.confidence:.1f}", f"{100 * one.accuracy:.1f}"
        ends = f"{100 * one.low:.1f} to {100 * one.high:.1f}"
        tip = f"confidence {confidence} %, accuracy {accuracy} % ({ends}), {one.count:,} rows"
        axes.dot(x, y, css, tip)
        rows.append((span, confidence, accuracy, ends, f"{one.count:,}"))
    strip = _Axes((44, 420, 426, 460), y_range=(0.0, max(method.shares)))
    width = (strip.right - strip.left) / len(method.shares)
    for i, share in enumerate(method.shares):
        if share:
            top = min(strip.y(share), strip.bottom - 1)
            low, high = 100 * i / len(method.shares), 100 * (i + 1) / len(method.shares)
            count = f"{round(share * shown.n):,} rows, {100 * share:.1f} %"
            strip.add(
                "rect",
                f"mark bar {css}",
                tip=f"confidence {low:g} to {high:g} %: {count}",
                x=round(strip.left + i * width + 0.5, 1),
                y=top,
                width=round(width - 1, 1),
                height=round(strip.bottom - top, 1),
            )
    strip.line(strip.left, strip.bottom, strip.right, strip.bottom, "axis")
    strip.text(235, strip.bottom + 18, "number of rows", "label middle")
    return Chart(
        f"reliability-{css}-{method.name}",
        f"Reliability of {method.name}",
        f"{filled} bins of {shown.name}; in {above} of them confidence is above accuracy.",
        _WIDTH,
        486,
        f"{axes.svg}\n{strip.svg}",
        ("confidence", "mean (%)", "accuracy (%)", "interval", "rows"),
        tuple(rows),
    )


def errors(facts: ReportFacts) -> Chart | None:
    """ECE of every method with labels, else confidence minus estimated accuracy."""
    labelled = facts.target.accuracy is not None
    pairs = [(one.name, one.ece if labelled else one.gap) for one in facts.methods]
    known = [(name, found) for name, found in pairs if found is not None]
    if not known:
        return None
    ends = [x for _, one in known for x in (one.value, one.low, one.high) if x is not None]
    low, high = min(0.0, *ends), max(0.0, *ends)
    room = 0.04 * max(high - low, 0.01)
    low, high = (low - room if low < 0 else 0.0), high + room
    axes = _Axes((96, 10, _WIDTH - 14, 10 + 30 * len(known)), x_range=(low, high))
    what = f"{'ECE' if labelled else 'confidence − estimated accuracy'} (points)"
    axes.x_axis([(at, f"{100 * at:g}") for at in ticks(low, high)], what)
    axes.line(axes.x(0), axes.top, axes.x(0), axes.bottom, "zero")
    for i, (name, found) in enumerate(known):
        css = "before" if name == "vanilla" else "after" if name == facts.method else "rest"
        y = axes.top + 30 * (i + 0.5)
        axes.ranged(found, y, css, f"{name}: {_points(found, 2)} points", 5)
        axes.text(axes.left - 8, y + 4, name, f"name end {css}")
    best = min(known, key=lambda pair: abs(pair[1].value))[0]
    return Chart(
        "errors",
        f"{what} of every method",
        f"{len(known)} methods; nearest to zero is {best}.",
        _WIDTH,
        round(axes.bottom + 42),
        axes.svg,
        ("method", what),
        tuple((name, _points(found, 2)) for name, found in known),
    )


def ladder(facts: ReportFacts) -> Chart:
    """Every set by confidence and temperature, and the target with the temperature it gets."""
    method = facts.of(facts.method)
    mean = facts.target.mean_confidence
    temperatures = [one.temperature for one in facts.sets]
    own = (method.temperature, method.temperature_low, method.temperature_high)
    temperatures += [t for t in own if t is not None]
    confidences = [one.mean_confidence for one in facts.sets] + [mean]
    axes = _Axes(
        (44, 28, _WIDTH - 14, 298),
        _padded(min(confidences), max(confidences), least=0.02),
        _padded(math.log(min(temperatures)), math.log(max(temperatures)), least=0.1),
    )
    low, high = (math.exp(end) for end in axes.y_range)
    steps = [m * 10.0**p for p in range(-4, 5) for m in (1, 1.5, 2, 3, 5, 7)]
    kept = [t for t in steps if low <= t <= high]
    kept = kept if len(kept) > 1 else ticks(low, high, 4)
    axes.y_axis([(math.log(t), f"{t:.3g}") for t in kept], "temperature T")
    percents = [(at, f"{100 * at:g}") for at in ticks(*axes.x_range)]
    axes.x_axis(percents, "mean raw confidence (%)")
    here = axes.x(mean)
    axes.line(here, axes.top, here, axes.bottom, "target")
    any_chosen = any(one.chosen for one in facts.sets)
    drawn = sorted(facts.sets, key=lambda one: (one.chosen, one.nearest, -one.distance))
    for one in drawn[-_MOST_POINTS:]:
        marked = one.chosen if any_chosen else one.nearest
        tip = (
            f"{one.name}: confidence {percent(one.mean_confidence)}, accuracy "
            f"{percent(one.accuracy)}, T = {one.temperature:.3g}"
        )
        x, y = axes.x(one.mean_confidence), axes.y(math.log(one.temperature))
        axes.dot(x, y, "near" if marked else "rest", tip, 6 if marked else 4)
    if method.temperature is not None:
        y = axes.y(math.log(method.temperature))
        words = f"T = {method.temperature:.3g}"
        tip = f"{method.name}: {words}"
        if method.temperature_low is not None and method.temperature_high is not None:
            t_low, t_high = method.temperature_low, method.temperature_high
            axes.line(here, axes.y(math.log(t_low)), here, axes.y(math.log(t_high)), "range after")
            tip += f" ({t_low:.3g} to {t_high:.3g})"
        corners = [(here, y - 8), (here + 8, y), (here, y + 8), (here - 8, y), (here, y - 8)]
        axes.path(corners, "mark diamond after", tip)
        right = here > (axes.left + axes.right) / 2
        css = "direct halo end" if right else "direct halo"
        axes.text(here + (-13 if right else 13), y - 8, words, css)
    return Chart(
        "ladder",
        "Sets of the bank and the target",
        f"{len(facts.sets)} sets by mean confidence and temperature; the target's mean confidence "
        f"is {percent(mean)}.",
        _WIDTH,
        340,
        axes.svg,
        key=(
            ("rest", "a set of the bank"),
            ("near", "chosen, or nearest in confidence"),
            ("target", "the target's mean confidence"),
            ("after", f"its temperature by {facts.method}"),
        ),
    )


def _padded(low: float, high: float, *, least: float) -> tuple[float, float]:
    room = 0.07 * max(high - low, least) + (least / 2 if high - low < least else 0)
    return low - room, high + room


def densities(facts: ReportFacts) -> Chart:
    """DensityFacts of raw confidence: the target over the sets of the bank nearest to it."""
    shown = facts.densities
    curves = [shown.target, *(values for _, values in shown.sets)]
    end = DIGITS if shown.stretched else 1.0
    axes = _Axes((14, 14, 404, 258), (0.0, end), (0.0, 1.04 * max(map(max, curves))))

    def place(confidence: float) -> float:
        value = float(stretch(np.array(confidence))) if shown.stretched else confidence
        return axes.x(min(value, end))

    def points(values: Sequence[float]) -> list[tuple[float, float]]:
        return [(place(x), axes.y(y)) for x, y in zip(shown.grid, values, strict=True)]

    scale, unit = _PERCENTS, "%"
    if shown.stretched:
        labels = ("0", "90", "99", "99.9", "99.99", "99.999", "≥ 99.9999")
        scale, unit = [(float(i), text) for i, text in enumerate(labels)], "%, logarithmic"
    axes.x_axis(scale, f"raw confidence ({unit})")
    mean = facts.target.mean_confidence
    area = [(axes.left, axes.bottom), *points(shown.target), (axes.right, axes.bottom)]
    axes.path(area, "area target", f"the target: mean {percent(mean)}")
    sets = [facts.sets[position] for position, _ in shown.sets]
    for i in reversed(range(len(sets))):
        tip = f"{sets[i].name}: mean {percent(sets[i].mean_confidence)}"
        axes.path(points(curves[1 + i]), f"mark curve {'rest' if i else 'near'}", tip)
    axes.path(points(shown.target), "mark curve target", f"the target: mean {percent(mean)}")
    axes.line(place(mean), axes.top, place(mean), axes.bottom, "target mean")
    return Chart(
        "densities",
        "Raw confidence of the target and of surrogate sets",
        f"DensityFacts of raw confidence of the target and of {len(sets)} sets of the bank.",
        _WIDTH,
        300,
        axes.svg,
        ("confidence (%)", "target", *(one.name for one in sets)),
        tuple(
            (f"{100 * x:.6g}", *(f"{values[i]:.2f}" for values in curves))
            for i, x in enumerate(shown.grid)
            if i % 10 == 0
        ),
        key=(
            ("target", "the target, and its mean"),
            ("near", sets[0].name),
            ("rest", "other sets near it"),
        ),
    )
