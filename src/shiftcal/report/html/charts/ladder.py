"""The sets of the bank by confidence and temperature, and where the target stands among them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shiftcal.report.html._words import number, percent
from shiftcal.report.html.charts.scene import Chart, Mark, Plane, curve, dot, line, ticks, word
from shiftcal.report.html.evidence import SetFacts
from shiftcal.report.html.facts import ReportFacts

_WIDTH, _HEIGHT = 440, 340
_MOST_POINTS = 400


def ladder(facts: ReportFacts) -> Chart:
    """Every set as a point, the target as a line, the temperature chosen with its interval."""
    made = facts.of(facts.method)
    chosen = [
        t for t in (made.temperature, made.temperature_low, made.temperature_high) if t is not None
    ]
    confidences = [one.mean_confidence for one in facts.sets] + [facts.target.mean_confidence]
    temperatures = [one.temperature for one in facts.sets] + chosen
    plane = Plane(
        44,
        28,
        _WIDTH - 14,
        _HEIGHT - 42,
        x_range=_wide(min(confidences), max(confidences), least=0.02),
        y_range=_wide(*(math.log(t) for t in (min(temperatures), max(temperatures))), least=0.1),
    )
    here = plane.x(facts.target.mean_confidence)
    marks = [
        *plane.y_axis(list(_temperatures(plane)), "temperature T"),
        *plane.x_axis(
            [(at, f"{100 * at:g}") for at in ticks(*plane.x_range)], "mean raw confidence (%)"
        ),
        line((here, plane.top), (here, plane.bottom), "target"),
        *_points(plane, facts.sets),
        *_answer(plane, here, facts),
    ]
    return Chart(
        "ladder",
        "Sets of the bank and the target",
        f"{len(facts.sets)} sets by mean confidence and temperature; the target's mean confidence "
        f"is {percent(facts.target.mean_confidence)}.",
        _WIDTH,
        _HEIGHT,
        tuple(marks),
        (),
        (),
        key=(
            ("rest", "a set of the bank"),
            ("near", "chosen, or nearest in confidence"),
            ("target", "the target's mean confidence"),
            ("after", f"what {facts.method} gives it"),
        ),
    )


def _wide(low: float, high: float, *, least: float) -> tuple[float, float]:
    room = 0.07 * max(high - low, least) + (least / 2 if high - low < least else 0)
    return low - room, high + room


def _temperatures(plane: Plane) -> Iterator[tuple[float, str]]:
    """Ticks of a logarithmic axis, enough of them and not too many."""
    low, high = (math.exp(end) for end in plane.y_range)
    rounded = [m * 10.0**p for p in range(-4, 5) for m in (1, 1.5, 2, 3, 5, 7)]
    found = [t for t in rounded if low <= t <= high]
    if len(found) < 2:
        found = ticks(low, high, 4)
    for t in found:
        yield math.log(t), number(t)


def _points(plane: Plane, sets: tuple[SetFacts, ...]) -> Iterator[Mark]:
    some = sorted(sets, key=lambda one: (one.chosen, one.nearest, -one.distance))[-_MOST_POINTS:]
    picked = any(one.chosen for one in sets)
    for one in some:
        marked = one.chosen if picked else one.nearest
        place = plane.x(one.mean_confidence), plane.y(math.log(one.temperature))
        tip = (
            f"{one.name}: {percent(one.mean_confidence)} sure, {percent(one.accuracy)} right, "
            f"T = {number(one.temperature)}"
        )
        yield dot(*place, "near" if marked else "rest", tip, r=6 if marked else 4)


def _answer(plane: Plane, here: float, facts: ReportFacts) -> Iterator[Mark]:
    made = facts.of(facts.method)
    if made.temperature is None:
        return
    y = plane.y(math.log(made.temperature))
    tip = f"{made.name}: T = {number(made.temperature)}"
    if made.temperature_low is not None and made.temperature_high is not None:
        low, high = (plane.y(math.log(t)) for t in (made.temperature_low, made.temperature_high))
        yield line((here, low), (here, high), "range after")
        tip += f" ({number(made.temperature_low)} to {number(made.temperature_high)})"
    diamond = [(here, y - 8), (here + 8, y), (here, y + 8), (here - 8, y), (here, y - 8)]
    yield curve(diamond, "mark diamond after", tip)
    right = here > (plane.left + plane.right) / 2
    anchor = "direct halo end" if right else "direct halo"
    yield word(here + (-13 if right else 13), y - 8, f"T = {number(made.temperature)}", anchor)
