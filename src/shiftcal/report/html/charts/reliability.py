"""A reliability diagram: how often rows are right, over how sure they are."""

from __future__ import annotations

from collections.abc import Iterator

from shiftcal.report.html._words import counted
from shiftcal.report.html.charts.scene import Chart, Mark, Plane, dot, line, percents
from shiftcal.report.html.evidence import Bin, MethodFacts, Shown

_PLANE = Plane(44, 28, 426, 368)
_STRIP = Plane(44, 420, 426, 460)
_WIDTH, _HEIGHT = 440, 486


def reliability(method: MethodFacts, shown: Shown, *, css: str) -> Chart:
    """The diagram of one method.

    Args:
        method: Its facts.
        shown: What it is drawn of.
        css: ``"before"`` or ``"after"``.
    """
    ticks = percents(0, 20, 40, 60, 80, 100)
    marks = [
        *_PLANE.y_axis(ticks, "right (%)"),
        *_PLANE.x_axis(ticks, "confidence (%)"),
        line((_PLANE.x(0), _PLANE.y(0)), (_PLANE.x(1), _PLANE.y(1)), "ideal"),
        *(mark for one in method.bins if one.count for mark in _drawn(one, css)),
        *_counts(method.shares, css, shown.n),
    ]
    held = [one for one in method.bins if one.confidence is not None and one.accuracy is not None]
    above = sum((one.confidence or 0) > (one.accuracy or 0) for one in held)
    return Chart(
        f"reliability-{css}-{method.name}",
        f"Reliability of {method.name}",
        f"{len(held)} bins of {shown.name}; in {above} of them confidence is above accuracy.",
        _WIDTH,
        _HEIGHT,
        tuple(marks),
        ("confidence", "mean (%)", "right (%)", "interval", "rows"),
        tuple(map(_row, method.bins)),
    )


def _drawn(one: Bin, css: str) -> Iterator[Mark]:
    assert one.confidence is not None
    assert one.accuracy is not None
    assert one.low is not None
    assert one.high is not None
    x, y = _PLANE.x(one.confidence), _PLANE.y(one.accuracy)
    yield line((x, y), (x, _PLANE.y(one.confidence)), f"gap {css}")
    yield line((x, _PLANE.y(one.low)), (x, _PLANE.y(one.high)), f"range {css}")
    yield dot(
        x,
        y,
        css,
        f"{100 * one.confidence:.1f} % sure, {100 * one.accuracy:.1f} % right "
        f"({100 * one.low:.1f} to {100 * one.high:.1f}), {counted(one.count, 'row')}",
    )


def _counts(shares: tuple[float, ...], css: str, n: int) -> Iterator[Mark]:
    """Bars below the diagram: how many rows there are at each confidence."""
    highest = max(shares)
    plane = Plane(_STRIP.left, _STRIP.top, _STRIP.right, _STRIP.bottom, y_range=(0.0, highest))
    width = (plane.right - plane.left) / len(shares)
    for i, share in enumerate(shares):
        if share:
            low, high = 100 * i / len(shares), 100 * (i + 1) / len(shares)
            top = min(plane.y(share), plane.bottom - 1)
            at: dict[str, str | float] = {
                "class": f"mark bar {css}",
                "x": round(plane.left + i * width + 0.5, 1),
                "y": top,
                "width": round(width - 1, 1),
                "height": round(plane.bottom - top, 1),
            }
            rows = counted(round(share * n), "row")
            yield Mark("rect", at, tip=f"{low:g} to {high:g} % sure: {rows}, {100 * share:.1f} %")
    yield line((plane.left, plane.bottom), (plane.right, plane.bottom), "axis")
    yield Mark(
        "text",
        {"class": "label middle", "x": (plane.left + plane.right) / 2, "y": plane.bottom + 18},
        text="how many rows are so confident",
    )


def _row(one: Bin) -> tuple[str, ...]:
    span = f"{100 * one.lower:.1f} to {100 * one.upper:.1f}"
    if one.confidence is None or one.accuracy is None or one.low is None or one.high is None:
        return span, "-", "-", "-", "0"
    return (
        span,
        f"{100 * one.confidence:.1f}",
        f"{100 * one.accuracy:.1f}",
        f"{100 * one.low:.1f} to {100 * one.high:.1f}",
        f"{one.count:,}",
    )
