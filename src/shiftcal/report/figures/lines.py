"""Lines with intervals: one number per method over a setting, in one panel or several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from shiftcal._drawing.palette import Look, looks
from shiftcal._drawing.places import beside
from shiftcal._types import Floats
from shiftcal.errors import InputError
from shiftcal.report.figures._axes import columns_for, from_zero, mark_categories, mark_numbers
from shiftcal.report.figures._page import WIDTH, Page, wrapped
from shiftcal.report.figures._record import Record, same_length
from shiftcal.report.figures._style import with_grid
from shiftcal.report.figures.base import FigureData

# How much of the way to the next x the series of one x may take together.
_SPREAD, _SPREAD_UNJOINED = 0.34, 0.7
_LEFT_OF_PANELS = 0.6


@dataclass(frozen=True, kw_only=True)
class Series(Record):
    """The numbers of one method.

    Attributes:
        key: Which colour and marker: a method's name, or any other text.
        label: In the legend.
        y: One value per x; ``None`` where there is none.
        low: Lower ends of the intervals, ``None`` where there is none.
        high: Upper ends.
    """

    key: str
    label: str
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] | None = None
    high: tuple[float | None, ...] | None = None

    def _check(self) -> None:
        owner = f"the series {self.label!r}"
        if (self.low is None) != (self.high is None):
            raise InputError(
                f"{owner} has one end of its intervals; give low and high, or neither."
            )
        same_length(owner, y=self.y, low=self.low, high=self.high)
        for low, high in zip(self.low or (), self.high or (), strict=True):
            if (low is None) != (high is None):
                raise InputError(f"{owner} has an interval with one end: {low} to {high}.")
            if low is not None and high is not None and low > high:
                raise InputError(f"{owner} has an interval upside down: {low} to {high}.")


@dataclass(frozen=True, kw_only=True)
class Panel(Record):
    """Several series over one x.

    Attributes:
        x: Rising numbers, or names, which stand at equal distances.
        series: At least one, with different keys.
        x_label: With its unit.
        title: Above the panel; empty for none.
        log_x: Whether equal distances are equal ratios.
        joined: Whether the points of a series are joined; if not said, numbers are, names are not.
    """

    x: tuple[float, ...] | tuple[str, ...]
    series: tuple[Series, ...]
    x_label: str
    title: str = ""
    log_x: bool = False
    joined: bool | None = None

    def _check(self) -> None:
        owner = f"the panel {self.title or self.x_label!r}"
        if not self.x or not self.series:
            raise InputError(f"{owner} must have at least one x and one series.")
        for series in self.series:
            same_length(f"{owner} with {series.label!r}", x=self.x, y=series.y)
        keys = [series.key for series in self.series]
        if len(set(keys)) < len(keys):
            raise InputError(f"{owner} must have series with different keys, not {keys}.")
        numbers = self.numbers
        if any(after <= before for before, after in pairwise(numbers)):
            raise InputError(f"{owner} must have rising numbers x, not {numbers}.")
        if self.log_x and (not numbers or numbers[0] <= 0):
            raise InputError(f"{owner} has log_x, so its x must be numbers above 0, not {self.x}.")

    @property
    def numbers(self) -> tuple[float, ...]:
        """The x that are numbers: all or none."""
        return tuple(x for x in self.x if not isinstance(x, str))

    @property
    def is_joined(self) -> bool:
        """Whether lines are drawn from point to point."""
        return bool(self.numbers) if self.joined is None else self.joined


@dataclass(frozen=True, kw_only=True)
class Lines(FigureData):
    """Series over x in panels side by side, which share the y axis and one legend.

    Attributes:
        panels: At least one. A key has the same label in all of them.
        y_label: With its unit, such as ``"ECE (%)"``.
        intervals: Upright bars, each series a little beside the other, or bands.
    """

    kind: ClassVar[str] = "lines"

    panels: tuple[Panel, ...]
    y_label: str
    intervals: Literal["bars", "bands"] = "bars"

    def _check(self) -> None:
        if not self.panels:
            raise InputError("a figure of lines must have at least one panel.")
        labels: dict[str, str] = {}
        for series in self._series():
            if labels.setdefault(series.key, series.label) != series.label:
                raise InputError(
                    f"the key {series.key!r} must have one label in all panels, not "
                    f"{labels[series.key]!r} and {series.label!r}."
                )

    def _series(self) -> Sequence[Series]:
        return list(chain.from_iterable(panel.series for panel in self.panels))

    def _drawn(self) -> Any:
        columns = columns_for(len(self.panels))
        rows = math.ceil(len(self.panels) / columns)
        page = Page(2.9 if rows == 1 else 2.3 * rows)
        grid = page.figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
        style = looks(series.key for series in self._series())
        handles: dict[str, Any] = {}
        width = (WIDTH - _LEFT_OF_PANELS) / columns
        for index, (axes, panel) in enumerate(zip(grid, self.panels, strict=False)):
            drawn = _draw_panel(axes, panel, style, bands=self.intervals == "bands", width=width)
            handles = {**drawn, **handles}
            if index % columns == 0:
                axes.set_ylabel(self.y_label)
        for axes in grid[len(self.panels) :]:
            axes.set_visible(False)
        values = [v for s in self._series() for part in (s.y, s.low) for v in part or ()]
        from_zero(grid[0], [value for value in values if value is not None])
        order = list(style)
        labels = {series.key: series.label for series in self._series()}
        return page.finish(
            [handles[key] for key in order],
            [labels[key] for key in order],
            title=self.title,
            note=self.note,
        )


def _draw_panel(
    axes: Any, panel: Panel, style: dict[str, Look], *, bands: bool, width: float
) -> dict[str, Any]:
    """Draw one panel, and give the line of each key for the legend."""
    with_grid(axes)
    if panel.title:
        axes.set_title(wrapped(panel.title, width), loc="left")
    axes.set_xlabel(wrapped(panel.x_label, width))
    if panel.log_x:
        axes.set_xscale("log")
    apart = not panel.is_joined or (not bands and any(series.low for series in panel.series))
    spread = (_SPREAD if panel.is_joined else _SPREAD_UNJOINED) if apart else 0.0
    places = panel.numbers or tuple(map(float, range(len(panel.x))))
    handles = {}
    for index, series in enumerate(panel.series):
        share = spread * (index - (len(panel.series) - 1) / 2) / len(panel.series)
        handles[series.key] = _draw_series(
            axes,
            beside(places, share, log=panel.log_x),
            series,
            style[series.key],
            joined=panel.is_joined,
            bands=bands,
        )
    if panel.numbers:
        mark_numbers(axes, panel.numbers, log=panel.log_x, width=width)
    else:
        mark_categories(axes, [str(x) for x in panel.x], width=width)
    return handles


def _draw_series(
    axes: Any, x: Sequence[float], series: Series, look: Look, *, joined: bool, bands: bool
) -> Any:
    """The line of one series, with its intervals behind it."""
    y, low, high = (_or_nan(part) for part in (series.y, series.low, series.high))
    (line,) = axes.plot(
        x,
        y,
        color=look.colour,
        marker=look.marker,
        linestyle=look.dashes if joined else "none",
        linewidth=1.3,
        markersize=4.2 if joined else 5.0,
        markeredgecolor="white",
        markeredgewidth=0.5,
        zorder=3,
    )
    if bands and joined and low.size:
        axes.fill_between(x, low, high, color=look.colour, alpha=0.16, linewidth=0, zorder=1)
    elif low.size:
        axes.vlines(x, low, high, color=look.colour, linewidth=1.0, zorder=2)
    return line


def _or_nan(values: Sequence[float | None] | None) -> Floats:
    return np.array([np.nan if value is None else value for value in values or ()], np.float64)
