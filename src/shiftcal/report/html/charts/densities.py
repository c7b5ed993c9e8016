"""Densities of raw confidence: the target over the sets of the bank that are nearest to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shiftcal.report.html._density import DIGITS, stretch
from shiftcal.report.html._words import percent
from shiftcal.report.html.charts.scene import Chart, Plane, curve, line, percents
from shiftcal.report.html.facts import ReportFacts

_WIDTH, _HEIGHT = 440, 300
# Ticks of the axis that is stretched towards 100 %.
_STRETCHED = ("0", "90", "99", "99.9", "99.99", "≥ 99.999")
_SCALE = ", each step ten times nearer to 100"


def densities(facts: ReportFacts) -> Chart:
    """Curves on one axis from 0 to 100 %."""
    told = facts.densities
    highest = max(*told.target, *(max(values) for _, values in told.sets))
    plane = Plane(
        14,
        14,
        _WIDTH - 36,
        _HEIGHT - 42,
        x_range=(0.0, DIGITS if told.stretched else 1.0),
        y_range=(0.0, 1.04 * highest),
    )

    def place(p_max: float) -> float:
        return plane.x(float(stretch(np.array([p_max]))[0]) if told.stretched else p_max)

    def points(values: Sequence[float]) -> list[tuple[float, float]]:
        return [(place(x), plane.y(y)) for x, y in zip(told.grid, values, strict=True)]

    words = [(float(i), text) for i, text in enumerate(_STRETCHED)]
    scale = words if told.stretched else percents(0, 20, 40, 60, 80, 100)
    marks = [*plane.x_axis(scale, f"raw confidence (%{_SCALE if told.stretched else ''})")]
    area = [(plane.left, plane.bottom), *points(told.target), (plane.right, plane.bottom)]
    here = f"the target: mean {percent(facts.target.mean_confidence)}"
    marks.append(curve(area, "area target", here))
    for position, values in reversed(told.sets):
        one = facts.sets[position]
        css = "near" if position == told.sets[0][0] else "rest"
        tip = f"{one.name}: mean {percent(one.mean_confidence)}, {percent(one.accuracy)} right"
        marks.append(curve(points(values), f"mark curve {css}", tip))
    marks.append(curve(points(told.target), "mark curve target", here))
    mean = place(facts.target.mean_confidence)
    marks.append(line((mean, plane.top), (mean, plane.bottom), "target mean"))
    names = [facts.sets[position].name for position, _ in told.sets]
    return Chart(
        "densities",
        "How confident the model is: target and surrogate sets",
        f"Densities of raw confidence of the target and of {len(names)} sets of the bank.",
        _WIDTH,
        _HEIGHT,
        tuple(marks),
        ("confidence (%)", "target", *names),
        tuple(
            (f"{100 * x:.6g}", *(f"{values[i]:.2f}" for values in (told.target, *_of(told.sets))))
            for i, x in enumerate(told.grid)
            if i % 10 == 0
        ),
        key=(
            ("target", "the target, and its mean"),
            ("near", names[0]),
            ("rest", "other sets near it"),
        ),
    )


def _of(sets: Sequence[tuple[int, tuple[float, ...]]]) -> list[tuple[float, ...]]:
    return [values for _, values in sets]
