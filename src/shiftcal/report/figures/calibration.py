"""Calibration plots: how often a method is right, beside how sure it is, over its p_max."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shiftcal._drawing.palette import BLUE, MUTED, ORANGE
from shiftcal.errors import InputError
from shiftcal.report.figures._axes import columns_for
from shiftcal.report.figures._page import WIDTH, Page, wrapped
from shiftcal.report.figures._record import Record, same_length, within_one
from shiftcal.report.figures._style import with_grid
from shiftcal.report.figures.base import FigureData

_MOST_COLUMNS = 4
_LABELS = ("accuracy,\nconfidence (%)", "share\n(%)")
# How much of the colour is there: both are seen where they overlap.
_ACCURACY, _CONFIDENCE = 0.75, 0.55
# Bins above it are too narrow to be seen, so they are counted.
_NARROW = 0.99


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

    @property
    def narrow(self) -> int:
        """How many bins lie above 0.99."""
        return sum(edge >= _NARROW for edge in self.edges[:-1])

    @property
    def even(self) -> bool:
        """Whether all bins hold equally many samples, as far as they can."""
        return max(self.count) - min(self.count) <= 1


@dataclass(frozen=True, kw_only=True)
class CalibrationPlots(FigureData):
    """A panel per method: binned accuracy and confidence, and where the samples lie.

    Where the two colours overlap both are reached; what sticks out is the calibration error. The
    shares of the samples are left out if they are the same in all bins of each method.

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
        shares = not all(panel.even for panel in self.panels)
        ratios = [4, 1] if shares else [1]
        high = len(ratios)
        page = Page((2.4 if shares else 2.0) * rows, share=min(1.0, (columns + 1) / 4))
        grid = page.figure.subplots(
            high * rows,
            columns,
            squeeze=False,
            sharex=True,
            sharey="row",
            height_ratios=ratios * rows,
        )
        for index, panel in enumerate(self.panels):
            row, column = divmod(index, columns)
            parts = grid[high * row : high * (row + 1), column]
            _draw_bins(parts[0], panel, width=(WIDTH - 0.6) / columns)
            if shares:
                _draw_shares(parts[1], panel)
            _mark_p_max(parts[-1])
            if column == 0:
                for axes, label in zip(parts, _LABELS, strict=False):
                    axes.set_ylabel(label)
        for axes in grid[-high:, len(self.panels) - (rows - 1) * columns :].ravel():
            axes.set_visible(False)
        note = " ".join(filter(None, (self.note, self._small_print())))
        return page.finish(*_legend(shares=shares), title=self.title, note=note)

    def _small_print(self) -> str:
        """How many bins stand so close together at the right end that they are not seen."""
        told = [f"{each.label} {each.narrow}" for each in self.panels if each.narrow]
        return f"Bins above {_NARROW}, too narrow to be seen: {', '.join(told)}." if told else ""


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
    axes.tick_params(axis="y", length=0)


def _mark_p_max(axes: Any) -> None:
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(axis="x", labelbottom=True)
    axes.set_xlabel(r"$p_{\max}$", parse_math=True, labelpad=1)


def _legend(*, shares: bool) -> tuple[list[Any], list[str]]:
    from matplotlib.patches import Patch

    accuracy = Patch(facecolor=BLUE, alpha=_ACCURACY)
    confidence = Patch(facecolor=ORANGE, alpha=_CONFIDENCE)
    handles = [accuracy, confidence, (accuracy, confidence)]
    labels = ["accuracy", "mean confidence", "both"]
    if shares:
        handles.append(Patch(facecolor=MUTED))
        labels.append("share of samples")
    return handles, labels
