"""The calibration error of every method, with its interval."""

from __future__ import annotations

from collections.abc import Iterator

from shiftcal.report.html.charts.scene import Chart, Mark, Plane, dot, line, ticks, word
from shiftcal.report.html.evidence import MethodFacts
from shiftcal.report.html.facts import ReportFacts
from shiftcal.report.html.parts import Ranged

_WIDTH, _STEP, _TOP = 440, 30, 10
_LEFT = 96


def errors(facts: ReportFacts) -> Chart | None:
    """ECE where there are labels, else confidence minus estimated accuracy; ``None`` without."""
    labelled = facts.target.accuracy is not None
    told = [(one, one.ece if labelled else one.gap) for one in facts.methods]
    known = [(one, found) for one, found in told if found is not None]
    if not known:
        return None
    low, high = _ends([found for _, found in known])
    plane = Plane(_LEFT, _TOP, _WIDTH - 14, _TOP + _STEP * len(known), x_range=(low, high))
    what = "ECE" if labelled else "confidence − estimated accuracy"
    words = [(at, f"{100 * at:g}") for at in ticks(low, high)]
    marks = [*plane.x_axis(words, f"{what} (points)")]
    marks.append(line((plane.x(0), plane.top), (plane.x(0), plane.bottom), "zero"))
    for place, (one, found) in enumerate(known):
        css = "before" if one.name == "vanilla" else "after" if one.name == facts.method else "rest"
        marks += _drawn(plane, _TOP + _STEP * (place + 0.5), one, found, css=css)
    best = min(known, key=lambda pair: abs(pair[1].value))[0].name
    return Chart(
        "errors",
        f"{what} of every method",
        f"{len(known)} methods; nearest to zero is {best}.",
        _WIDTH,
        round(plane.bottom + 42),
        tuple(marks),
        ("method", f"{what} (points)"),
        tuple((one.name, _told(found)) for one, found in known),
    )


def _ends(found: list[Ranged]) -> tuple[float, float]:
    values = [x for one in found for x in (one.value, one.low, one.high) if x is not None]
    low, high = min(0.0, *values), max(0.0, *values)
    room = 0.04 * max(high - low, 0.01)
    return (low - room if low < 0 else 0.0), high + room


def _drawn(plane: Plane, y: float, one: MethodFacts, found: Ranged, *, css: str) -> Iterator[Mark]:
    yield line((plane.left, y), (plane.right, y), "grid")
    yield word(plane.left - 8, y + 4, one.name, f"name end {css}")
    if found.low is not None and found.high is not None:
        yield line((plane.x(found.low), y), (plane.x(found.high), y), f"range {css}")
    yield dot(plane.x(found.value), y, css, f"{one.name}: {_told(found)} points", r=5)


def _told(found: Ranged) -> str:
    value = f"{100 * found.value:.2f}"
    if found.low is None or found.high is None:
        return value
    return f"{value} ({100 * found.low:.2f} to {100 * found.high:.2f})"
