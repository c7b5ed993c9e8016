"""How sure and how right, on one line: the answer at a glance."""

from __future__ import annotations

from collections.abc import Iterator

from shiftcal.report.html._words import percent
from shiftcal.report.html.charts.scene import Chart, Mark, Plane, dot, line, percents, word
from shiftcal.report.html.facts import ReportFacts
from shiftcal.report.html.parts import Ranged

_WIDTH, _STEP, _TOP = 350, 38, 8


def overview(facts: ReportFacts) -> Chart:
    """Mean confidence before and after, and accuracy between them."""
    rows = list(_rows(facts))
    bottom = _TOP + _STEP * len(rows)
    plane = Plane(8, _TOP, _WIDTH - 14, bottom)
    marks = list(plane.x_axis(percents(0, 20, 40, 60, 80, 100), "percent"))
    for place, (css, label, found) in enumerate(rows):
        marks += _drawn(plane, _TOP + _STEP * place, label, found, css=css)
    return Chart(
        "overview",
        "How sure the model is, and how often it is right",
        "; ".join(f"{label} {_told(found)}" for _, label, found in rows) + ".",
        _WIDTH,
        bottom + 42,
        tuple(marks),
        ("what", "percent"),
        tuple((label, _told(found)) for _, label, found in rows),
    )


def _rows(facts: ReportFacts) -> Iterator[tuple[str, str, Ranged]]:
    yield "before", "mean confidence", Ranged(facts.target.mean_confidence)
    if facts.target.accuracy is not None:
        yield "truth", "accuracy, by the labels", facts.target.accuracy
    if facts.estimate is not None:
        estimate = facts.estimate
        found = Ranged(estimate.value, estimate.low, estimate.high)
        yield "guess", "accuracy, estimated", found
    yield (
        "after",
        f"mean confidence after {facts.method}",
        Ranged(facts.of(facts.method).mean_confidence),
    )


def _drawn(plane: Plane, top: float, label: str, found: Ranged, *, css: str) -> Iterator[Mark]:
    y = top + 26
    yield line((plane.left, y), (plane.right, y), "grid")
    if found.low is not None and found.high is not None:
        yield line((plane.x(found.low), y), (plane.x(found.high), y), f"range {css}")
    yield dot(plane.x(found.value), y, css, f"{label}: {_told(found)}", r=6)
    yield word(plane.left, top + 14, f"{label}: {_told(found)}", "direct")


def _told(found: Ranged) -> str:
    if found.low is None or found.high is None:
        return percent(found.value)
    return f"{percent(found.value)} ({100 * found.low:.1f} to {100 * found.high:.1f})"
