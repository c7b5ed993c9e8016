"""Box and whiskers: how a number spreads, for every method in every group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shiftcal._drawing.palette import Look, looks, tint
from shiftcal.errors import InputError
from shiftcal.report.figures._axes import from_zero, mark_categories
from shiftcal.report.figures._page import WIDTH, Page
from shiftcal.report.figures._record import Record, same_length
from shiftcal.report.figures._style import with_grid
from shiftcal.report.figures.base import FigureData

# The boxes of a group take this much of its width together.
_TOGETHER = 0.82
_LEFT = 0.6
_SMALL_PRINT = (
    "Boxes: quartiles; whiskers: values within 1.5 times the box's height of it; circles: values "
    "beyond; diamonds: means."
)


@dataclass(frozen=True)
class BoxNumbers:
    """What one box shows.

    Attributes:
        mean: The marker.
        quartiles: Lower end, line and upper end of the box.
        whiskers: The outermost values within 1.5 times the box's height from it.
        beyond: Values outside the whiskers, rising.
    """

    mean: float
    quartiles: tuple[float, float, float]
    whiskers: tuple[float, float]
    beyond: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class BoxSeries(Record):
    """The values of one method.

    Attributes:
        key: Which colour: a method's name, or any other text.
        label: In the legend.
        values: For each group its values in any order; empty where there are none.
    """

    key: str
    label: str
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Boxes(FigureData):
    """One box for each series in each group (Tukey, 1977).

    What its parts are is said below it, after the note, unless the note tells of whiskers itself.

    Attributes:
        groups: Their names, from left to right.
        series: At least one, with different keys.
        x_label: What the groups are.
        y_label: With its unit, such as ``"ECE (%)"``.
    """

    kind: ClassVar[str] = "boxes"

    groups: tuple[str, ...]
    series: tuple[BoxSeries, ...]
    x_label: str
    y_label: str

    def _check(self) -> None:
        if not self.groups or not self.series:
            raise InputError("a figure of boxes must have at least one group and one series.")
        for series in self.series:
            same_length(f"the series {series.label!r}", groups=self.groups, values=series.values)
        keys = [series.key for series in self.series]
        if len(set(keys)) < len(keys):
            raise InputError(f"a figure of boxes must have different keys, not {keys}.")

    def numbers(self) -> tuple[tuple[BoxNumbers | None, ...], ...]:
        """What the boxes show, by series, then group; ``None`` where there are no values."""
        return tuple(
            tuple(box_numbers(values) if values else None for values in series.values)
            for series in self.series
        )

    def _drawn(self) -> Any:
        page = Page(3.0)
        axes = page.figure.subplots()
        with_grid(axes)
        style = looks(series.key for series in self.series)
        step = _TOGETHER / len(self.series)
        handles = []
        for index, (series, boxes) in enumerate(zip(self.series, self.numbers(), strict=True)):
            offset = (index - (len(self.series) - 1) / 2) * step
            shown = {g + offset: box for g, box in enumerate(boxes) if box is not None}
            _draw_boxes(axes, shown, style[series.key], width=min(0.78 * step, 0.3))
            handles.append(_handle(style[series.key]))
        mark_categories(axes, self.groups, width=WIDTH - _LEFT)
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.y_label)
        from_zero(axes, [v for series in self.series for group in series.values for v in group])
        labels = [series.label for series in self.series]
        told = "whiskers" in self.note
        note = self.note if told else " ".join(filter(None, (self.note, _SMALL_PRINT)))
        return page.finish(handles, labels, title=self.title, note=note)


def box_numbers(values: tuple[float, ...]) -> BoxNumbers:
    """Mean, quartiles (linear between values), whiskers and what lies beyond them."""
    ordered = np.sort(np.array(values, np.float64))
    low, middle, high = (float(q) for q in np.percentile(ordered, (25, 50, 75)))
    reach = 1.5 * (high - low)
    # A quartile may lie between values, so the outermost value within reach may be inside the box.
    within = ordered[(ordered >= low - reach) & (ordered <= high + reach)]
    whiskers = (min(float(within[0]), low), max(float(within[-1]), high))
    beyond = ordered[(ordered < low - reach) | (ordered > high + reach)]
    return BoxNumbers(
        mean=float(ordered.mean()),
        quartiles=(low, middle, high),
        whiskers=whiskers,
        beyond=tuple(beyond.tolist()),
    )


def _draw_boxes(axes: Any, boxes: dict[float, BoxNumbers], look: Look, *, width: float) -> None:
    statistics = [
        {
            "mean": box.mean,
            "q1": box.quartiles[0],
            "med": box.quartiles[1],
            "q3": box.quartiles[2],
            "whislo": box.whiskers[0],
            "whishi": box.whiskers[1],
            "fliers": list(box.beyond),
        }
        for box in boxes.values()
    ]
    line = {"color": look.colour, "linewidth": 0.9}
    small = {"markersize": 2.2, "markeredgecolor": look.colour, "markeredgewidth": 0.6}
    axes.bxp(
        statistics,
        positions=list(boxes),
        widths=width,
        showmeans=True,
        showcaps=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": tint(look.colour), "edgecolor": look.colour, "linewidth": 0.9},
        medianprops={"color": look.colour, "linewidth": 2.0, "solid_capstyle": "butt"},
        whiskerprops=line,
        flierprops={**small, "marker": "o", "markerfacecolor": "none"},
        meanprops={
            "marker": "D",
            "markersize": 3.2,
            "markerfacecolor": "white",
            "markeredgecolor": look.colour,
            "markeredgewidth": 0.8,
        },
    )


def _handle(look: Look) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=tint(look.colour), edgecolor=look.colour, linewidth=0.9)
