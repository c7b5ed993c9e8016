"""ECE of several methods over the severity of the corruption, with its spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shiftcal._checks import check_choice, check_fraction
from shiftcal._drawing.places import beside
from shiftcal.plot._axes import axes_for, check_axes, legend_text, name_axes, show_legend
from shiftcal.plot._colours import background, series_looks
from shiftcal.plot._series import Line, line, numbers_by_severity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Spread = Literal["interval", "quartiles", "range"]
# How much of the way to the next severity the bars of one take together.
_TOGETHER = 0.34


def ece_by_severity(
    ece: Mapping[str, object],
    *,
    ax: Axes | None = None,
    severities: Sequence[float] | None = None,
    spread: Spread = "interval",
    level: float = 0.95,
) -> Axes:
    """A line per method: its ECE over the severity of the corruption, with bars for the spread.

    Args:
        ece: Label to numbers, as :func:`errors_by_severity` gives them: severity to one or more
            ECE, fractions. Or, in the order of ``severities``, one number or several for each. A
            method's name brings its colour and marker.
        ax: Where to draw; a new figure by default.
        severities: For numbers without them; 1, 2, ... by default.
        spread: What the bars are: ``"interval"``, Student's interval of the mean, which the line
            goes through; ``"quartiles"``, around the median, which the line then goes through; or
            ``"range"``, from the least to the largest, with a line through the means. A single
            number has no bar.
        level: Coverage of the interval.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If there is no number, or one is not within [0, 1].
        MissingExtra: If matplotlib is not installed.
    """
    check_axes(ax, plot="ece_by_severity")
    check_choice(spread, ("interval", "quartiles", "range"), name="spread")
    check_fraction(level, name="level")
    numbers = numbers_by_severity(ece, severities)
    lines = {label: line(of, spread=spread, level=level) for label, of in numbers.items()}
    axes = axes_for(ax, size=(6.4, 4.0))
    every = sorted({x for one in lines.values() for x in one.x})
    looks = series_looks(axes, list(lines))
    for index, (label, one) in enumerate(lines.items()):
        share = _TOGETHER * (index - (len(lines) - 1) / 2) / len(lines)
        moved = dict(zip(every, beside(every, share, log=False), strict=True))
        _draw(axes, [moved[x] for x in one.x], one, label=label, look=looks[label])
    axes.set_ylim(bottom=0)
    if all(float(x).is_integer() for x in every) and len(every) <= 12:
        axes.set_xticks(every, [f"{x:g}" for x in every])
    name_axes(axes, x="severity", y=f"{'median ' if spread == 'quartiles' else ''}ECE")
    show_legend(axes, where="upper left")  # most errors rise to the right
    return axes


def _draw(axes: Any, x: Sequence[float], one: Line, *, label: str, look: Any) -> None:
    y = np.array(one.y)
    # A mean of equal numbers may lie beside them by rounding.
    reach = np.maximum([y - np.array(one.low), np.array(one.high) - y], 0.0)
    axes.errorbar(
        np.array(x),
        y,
        yerr=reach,
        label=legend_text(label),
        color=look.colour,
        marker=look.marker,
        linestyle=look.dashes,
        markeredgecolor=background(axes),
        markeredgewidth=0.6,
        markersize=10 if look.marker == "*" else 6,
        linewidth=1.4,
        elinewidth=1.1,
    )
