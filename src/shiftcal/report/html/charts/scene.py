"""What a chart is made of, and the plane it is drawn in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mark:
    """One element of a drawing.

    Attributes:
        tag: ``line``, ``circle``, ``rect``, ``path`` or ``text``.
        at: Its attributes; the page escapes them.
        text: What is written, for ``text``.
        tip: What is told of it when it is pointed at.
    """

    tag: str
    at: dict[str, str | float]
    text: str = ""
    tip: str = ""


@dataclass(frozen=True)
class Chart:
    """A drawing with everything that stands for it where it cannot be seen.

    Attributes:
        name: Unique on the page.
        title: What it is.
        description: What it shows, in a sentence.
        width: In units of the drawing.
        height: The same.
        marks: In the order they are drawn.
        header: Of the table that tells the same.
        rows: Of that table.
        key: What colours mean: class and words.
    """

    name: str
    title: str
    description: str
    width: int
    height: int
    marks: tuple[Mark, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    key: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Plane:
    """A rectangle with two scales.

    Attributes:
        left: Of the rectangle, in units of the drawing; so the others.
        top: Its top.
        right: Its right side.
        bottom: Its bottom.
        x_range: Values at the left and right side.
        y_range: Values at the bottom and the top.
    """

    left: float
    top: float
    right: float
    bottom: float
    x_range: tuple[float, float] = (0.0, 1.0)
    y_range: tuple[float, float] = field(default=(0.0, 1.0))

    def x(self, value: float) -> float:
        """Where a value stands, from the left."""
        low, high = self.x_range
        return round(self.left + (value - low) / (high - low) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        """Where a value stands, from the top."""
        low, high = self.y_range
        return round(self.bottom - (value - low) / (high - low) * (self.bottom - self.top), 1)

    def x_axis(self, ticks: Sequence[tuple[float, str]], label: str) -> Iterator[Mark]:
        """A line along the bottom, with words below it."""
        yield line((self.left, self.bottom), (self.right, self.bottom), "axis")
        for value, words in ticks:
            yield line((self.x(value), self.bottom), (self.x(value), self.bottom + 4), "axis")
            yield word(self.x(value), self.bottom + 17, words, "tick middle")
        yield word((self.left + self.right) / 2, self.bottom + 34, label, "label middle")

    def y_axis(self, ticks: Sequence[tuple[float, str]], label: str) -> Iterator[Mark]:
        """Lines across, with words at the left and the label above them."""
        for value, words in ticks:
            yield line((self.left, self.y(value)), (self.right, self.y(value)), "grid")
            yield word(self.left - 6, self.y(value) + 4, words, "tick end")
        yield word(2, self.top - 10, label, "label")


Place = tuple[float, float]


def line(start: Place, end: Place, css: str) -> Mark:
    """A straight line."""
    at = dict(zip(("x1", "y1", "x2", "y2"), (*start, *end), strict=True))
    return Mark("line", {"class": css, **at})


def word(x: float, y: float, text: str, css: str) -> Mark:
    """Text; its class says where it is anchored."""
    return Mark("text", {"class": css, "x": round(x, 1), "y": round(y, 1)}, text=text)


def dot(x: float, y: float, css: str, tip: str, *, r: float = 4.5) -> Mark:
    """A point that tells something."""
    return Mark("circle", {"class": f"mark {css}", "cx": x, "cy": y, "r": r}, tip=tip)


def curve(points: Sequence[tuple[float, float]], css: str, tip: str = "") -> Mark:
    """A line through points."""
    steps = " L".join(f"{x:g} {y:g}" for x, y in points)
    return Mark("path", {"class": css, "d": f"M{steps}"}, tip=tip)


def percents(*values: int) -> list[tuple[float, str]]:
    """Ticks at whole percents."""
    return [(value / 100, str(value)) for value in values]


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers within a range, at steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]
