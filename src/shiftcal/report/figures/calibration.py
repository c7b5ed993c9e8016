"""Calibration plots: how often a method is right, beside how sure it is, over its p_max."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shiftcal.errors import InputError
from shiftcal.report.figures._axes import columns_for
from shiftcal.report.figures._page import WIDTH, Page, wrapped
from shiftcal.report.figures._record import Record, same_length, within_one
from shiftcal.report.figures._style import BLUE, MUTED, ORANGE, with_grid
from shiftcal.report.figures.base import FigureData

_MOST_COLUMNS = 4
# How much of the colour is there: both are seen where they overlap.
_ACCURACY, _CONFIDENCE = 0.75, 0.55


@dataclass(frozen=True, kw_only=True)
class Reliability(Record):
    """One method's bins.

    Attributes:
        key: The method, for whoever reads the data; the colours here are those of the bars.
        label: Above its panel.
        edges: Of the bins of p_max, rising, in [0, 1]; one more than there are bins.
        accuracy: Of each bin, in percent; ``None`` where a bin is empty.
        confidence: Mean of each bin, in percent; ``None`` where a bin is empty.
        count: How many samples each bin holds.
        ece: In percent.
        temperature: If the method has one.
    """

    key: str
    label: str
    edges: tuple[float, ...]
    accuracy: tuple[float | None, ...]
    confidence: tuple[float | None, ...]
    count: tuple[int, ...]
    ece: float
    temperature: float | None = None

    def _check(self) -> None:
        owner = f"the method {self.label!r}"
        bins = self.edges[1:]
        same_length(
            owner, bins=bins, accuracy=self.accuracy, confidence=self.confidence, count=self.count
        )
        within_one(owner, self.edges, name="edges")
        for index, filled in enumerate(self.count):
            values = (self.accuracy[index], self.confidence[index])
            if filled < 0 or any((value is None) != (filled == 0) for value in values):
                raise InputError(
                    f"{owner} must have an accuracy and a confidence where a bin holds samples, "
                    f"and nowhere else; bin {index} holds {filled} and has {values}."
                )
        if not sum(self.count):
            raise InputError(f"{owner} must have at least one sample in its bins.")


@dataclass(frozen=True, kw_only=True)
class CalibrationPlots(FigureData):
    """A panel per method: binned accuracy and confidence, and where the samples lie.

    Where the two colours overlap both are reached; what sticks out is the calibration error.

    Attributes:
        panels: At least one.
    """

    kind: ClassVar[str] = "calibration"

    panels: tuple[Reliability, ...]

    def _check(self) -> None:
        if not self.panels:
            raise InputError("a figure of calibration plots must have at least one panel.")

    def _drawn(self) -> Any:
        columns = columns_for(len(self.panels), _MOST_COLUMNS)
        rows = math.ceil(len(self.panels) / columns)
        page = Page(2.4 * rows, share=min(1.0, (columns + 1) / 4))
        grid = page.figure.subplots(
            2 * rows, columns, squeeze=False, sharex=True, sharey="row", height_ratios=[4, 1] * rows
        )
        for index, panel in enumerate(self.panels):
            row, column = divmod(index, columns)
            above, below = grid[2 * row, column], grid[2 * row + 1, column]
            _draw_bins(above, panel, width=(WIDTH - 0.6) / columns)
            _draw_shares(below, panel)
            if column == 0:
                above.set_ylabel("accuracy,\nconfidence (%)")
                below.set_ylabel("share\n(%)")
        for axes in grid[-2:, len(self.panels) - (rows - 1) * columns :].ravel():
            axes.set_visible(False)
        return page.finish(*_legend(), title=self.title, note=self.note)


def _draw_bins(axes: Any, panel: Reliability, *, width: float) -> None:
    with_grid(axes)
    left, widths = np.array(panel.edges[:-1]), np.diff(panel.edges)
    for heights, colour, alpha in (
        (panel.accuracy, BLUE, _ACCURACY),
        (panel.confidence, ORANGE, _CONFIDENCE),
    ):
        filled = [i for i, height in enumerate(heights) if height is not None]
        axes.bar(
            left[filled],
            [heights[i] for i in filled],
            widths[filled],
            align="edge",
            color=colour,
            alpha=alpha,
            edgecolor="white",
            linewidth=0.4,
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 50, 100])
    numbers = f"ECE {panel.ece:.2f} %"
    if panel.temperature is not None:
        numbers += f", T = {panel.temperature:.2f}"
    axes.set_title(f"{wrapped(panel.label, width)}\n{numbers}", loc="left")


def _draw_shares(axes: Any, panel: Reliability) -> None:
    shares = 100 * np.array(panel.count) / sum(panel.count)
    widths = np.diff(panel.edges)
    axes.bar(panel.edges[:-1], shares, widths, align="edge", color=MUTED, edgecolor="white")
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(axis="x", labelbottom=True)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(r"$p_{\max}$", parse_math=True, labelpad=1)


def _legend() -> tuple[list[Any], list[str]]:
    from matplotlib.patches import Patch

    accuracy = Patch(facecolor=BLUE, alpha=_ACCURACY)
    confidence = Patch(facecolor=ORANGE, alpha=_CONFIDENCE)
    handles = [accuracy, confidence, (accuracy, confidence), Patch(facecolor=MUTED)]
    return handles, ["accuracy", "mean confidence", "both", "share of samples"]
