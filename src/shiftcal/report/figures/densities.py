"""Why the closest surrogate is chosen: densities of p_max, and what each map gives the target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shiftcal._checks import check_confidence
from shiftcal._types import Confidence, Floats
from shiftcal.errors import InputError
from shiftcal.report.figures._page import WIDTH, Page, wrapped
from shiftcal.report.figures._record import Record, same_length, within_one
from shiftcal.report.figures._style import BLUE, CHOSEN, INK, MUTED, ORANGE
from shiftcal.report.figures.base import FigureData

_MOST_COLUMNS = 6
_LEAST_BANDWIDTH = 0.005
_BLOCK = 4096


@dataclass(frozen=True, kw_only=True)
class Surrogate(Record):
    """One surrogate set, and the target under the map fitted on it.

    Attributes:
        label: Above its panel.
        density: Of its p_max, on the grid of the figure.
        mean: Of its p_max.
        accuracy: Of the target, in percent.
        confidence: Mean of the target under this set's map, in percent.
        ece: Of the target under this set's map, in percent.
        chosen: Whether this is the set that the method takes.
    """

    label: str
    density: tuple[float, ...]
    mean: float
    accuracy: float
    confidence: float
    ece: float
    chosen: bool = False


@dataclass(frozen=True, kw_only=True)
class Densities(FigureData):
    """The target's p_max beside that of every surrogate; below, its accuracy and confidence.

    Attributes:
        grid: Rising values of p_max, in [0, 1].
        target: Density of the target's p_max on the grid.
        target_mean: Of the target's p_max.
        target_label: In the legend.
        surrogates: At least one.
    """

    kind: ClassVar[str] = "densities"

    grid: tuple[float, ...]
    target: tuple[float, ...]
    target_mean: float
    target_label: str
    surrogates: tuple[Surrogate, ...]

    def _check(self) -> None:
        if not self.surrogates:
            raise InputError("a figure of densities must have at least one surrogate.")
        for each in self.surrogates:
            owner = f"the surrogate {each.label!r}"
            same_length(owner, grid=self.grid, target=self.target, density=each.density)
        within_one("a figure of densities", self.grid, name="grid")

    def _drawn(self) -> Any:
        bands = math.ceil(len(self.surrogates) / _MOST_COLUMNS)
        columns = math.ceil(len(self.surrogates) / bands)
        page = Page(3.1 * bands, share=min(1.0, (columns + 1) / 5))
        grid = page.figure.subplots(
            2 * bands, columns, squeeze=False, sharey="row", height_ratios=[1.25, 1] * bands
        )
        highest = max(max(y) for y in (self.target, *(each.density for each in self.surrogates)))
        for index, each in enumerate(self.surrogates):
            band, column = divmod(index, columns)
            above, below = grid[2 * band, column], grid[2 * band + 1, column]
            self._draw_densities(above, each, width=(WIDTH - 0.6) / columns)
            above.set_ylim(0, 1.05 * highest)
            _draw_bars(below, each)
            if column == 0:
                above.set_ylabel("density")
                below.set_ylabel("target under\nthis map (%)")
        for axes in grid[-2:, len(self.surrogates) - (bands - 1) * columns :].ravel():
            axes.set_visible(False)
        page.figure.get_layout_engine().set(wspace=0.06)
        return page.finish(*_legend(self.target_label), title=self.title, note=self.note)

    def _draw_densities(self, axes: Any, each: Surrogate, *, width: float) -> None:
        for y, mean, colour in (
            (each.density, each.mean, ORANGE),
            (self.target, self.target_mean, BLUE),
        ):
            axes.fill_between(self.grid, y, color=colour, alpha=0.25, linewidth=0)
            axes.plot(self.grid, y, color=colour, linewidth=1.2)
            axes.axvline(mean, color=colour, linewidth=1.2, linestyle=(0, (3, 1.5)))
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes.set_yticks([])
        axes.set_xlabel(r"$p_{\max}$", parse_math=True, labelpad=1)
        title = f"{each.label}\n(chosen)" if each.chosen else each.label
        axes.set_title(wrapped(title, width), weight="bold" if each.chosen else "normal")
        if each.chosen:
            axes.set_facecolor(CHOSEN)


def density(p_max: Confidence, grid: Floats) -> Floats:
    """Kernel density of values in [0, 1], with no mass lost at the ends.

    Gaussian kernels with Scott's bandwidth, ``std * n**(-1/5)``, but at least 0.005; what a kernel
    puts below 0 or above 1 is folded back, so that the density integrates to one over [0, 1].

    Args:
        p_max: ``(n,)`` highest probabilities.
        grid: ``(m,)`` where the density is wanted, rising, in [0, 1].

    Returns:
        ``(m,)`` densities.
    """
    values = check_confidence(p_max, name="p_max").astype(np.float64)
    points = np.asarray(grid, np.float64)
    within_one("a density", points.ravel().tolist(), name="grid")
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    width = max(spread * values.size ** (-1 / 5), _LEAST_BANDWIDTH)
    total = np.zeros(points.size)
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        for mirrored in (block, -block, 2 - block):
            total += np.exp(-0.5 * ((points[:, None] - mirrored) / width) ** 2).sum(axis=1)
    return total / (values.size * width * math.sqrt(2 * math.pi))


def _draw_bars(axes: Any, each: Surrogate) -> None:
    heights = (each.accuracy, each.confidence)
    bars = axes.bar((0, 1), heights, width=0.62, color=(BLUE, ORANGE), alpha=0.85)
    axes.bar_label(bars, fmt="{:.1f}", padding=1.5, color=INK)
    axes.set_ylim(0, 118)  # room for the number above a full bar
    axes.set_yticks([0, 50, 100])
    axes.set_xlim(-0.65, 1.65)
    axes.set_xticks([])
    axes.set_xlabel(f"ECE {each.ece:.2f} %", weight="bold" if each.chosen else "normal")
    axes.tick_params(axis="y", length=0)
    if each.chosen:
        axes.set_facecolor(CHOSEN)


def _legend(target: str) -> tuple[list[Any], list[str]]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color=BLUE, linewidth=1.2),
        Line2D([], [], color=ORANGE, linewidth=1.2),
        Line2D([], [], color=MUTED, linewidth=1.2, linestyle=(0, (3, 1.5))),
        Patch(facecolor=BLUE, alpha=0.85),
        Patch(facecolor=ORANGE, alpha=0.85),
    ]
    return handles, [target, "surrogate set", "mean", "accuracy", "confidence"]
