"""Why the closest surrogate is chosen: densities of p_max, and what each map gives the target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.integrate import trapezoid

from shiftcal._drawing.palette import BLUE, CHOSEN, DARK, INK, LIGHT, MUTED, ORANGE
from shiftcal._types import Floats
from shiftcal.errors import InputError
from shiftcal.numerics.kernel_density import DIGITS, stretch
from shiftcal.report.figures._kernel_density import density, stretched_grid
from shiftcal.report.figures._page import WIDTH, Page, wrapped
from shiftcal.report.figures._record import Record, same_length, within_one
from shiftcal.report.figures.base import FigureData

__all__ = ["Densities", "Surrogate", "density", "stretched_grid"]

# A stretched axis has longer numbers at its ticks, and needs the room for means side by side.
_MOST_COLUMNS, _MOST_STRETCHED = 6, 3
_TICKS = (0.0, 0.5, 1.0)
_STRETCHED_TICKS = (0.5, 0.9, 0.99, 0.999, 0.99999)
_MEAN: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (3, 1.5))}


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

    On a stretched axis equal distances are equal factors of ``1 - p_max``, so that the values of an
    over-confident network, most of them near 1, are seen; means are still means of p_max.

    Attributes:
        grid: Rising values of p_max, in [0, 1].
        target: Density of the target's p_max on the grid.
        target_mean: Of the target's p_max.
        target_label: In the legend.
        surrogates: At least one.
        stretched: Whether the axis is stretched, and all densities are those on it.
    """

    kind: ClassVar[str] = "densities"

    grid: tuple[float, ...]
    target: tuple[float, ...]
    target_mean: float
    target_label: str
    surrogates: tuple[Surrogate, ...]
    stretched: bool = False

    def _check(self) -> None:
        if not self.surrogates:
            raise InputError("a figure of densities must have at least one surrogate.")
        for each in self.surrogates:
            owner = f"the surrogate {each.label!r}"
            same_length(owner, grid=self.grid, target=self.target, density=each.density)
        within_one("a figure of densities", self.grid, name="grid")

    def beyond(self) -> tuple[float, tuple[float, ...]]:
        """Shares of the target and of each surrogate that lie outside the grid."""
        x = self._places(self.grid)
        target, *others = (
            max(0.0, 1 - float(trapezoid(y, x)))
            for y in (self.target, *(each.density for each in self.surrogates))
        )
        return target, tuple(others)

    def _places(self, p_max: tuple[float, ...]) -> Floats:
        """Where values of p_max stand on the axis."""
        values = np.array(p_max, np.float64)
        return stretch(values) if self.stretched else values

    def _drawn(self) -> Any:
        most = _MOST_STRETCHED if self.stretched else _MOST_COLUMNS
        bands = math.ceil(len(self.surrogates) / most)
        columns = math.ceil(len(self.surrogates) / bands)
        page = Page(
            (2.6 if self.stretched else 3.1) * bands, share=min(1.0, (columns + 1) / (most - 1))
        )
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
        note = " ".join(filter(None, (self.note, self._small_print())))
        return page.finish(*_legend(self.target_label), title=self.title, note=note)

    def _small_print(self) -> str:
        """How the axes are to be read."""
        if not self.stretched:
            return "Densities: per unit of p_max."
        target, others = self.beyond()
        shares = dict.fromkeys(f"{100 * end:.0f}" for end in (min(others), max(others)))
        return (
            "Axis: equal distances are equal factors of 1 - p_max; densities: per factor of 10. "
            f"Further right lie {100 * target:.0f} % of the target and "
            f"{' to '.join(shares)} % of the surrogate sets."
        )

    def _draw_densities(self, axes: Any, each: Surrogate, *, width: float) -> None:
        x = self._places(self.grid)
        for y, mean, colour in (
            (each.density, each.mean, ORANGE),
            (self.target, self.target_mean, BLUE),
        ):
            axes.fill_between(x, y, color=colour, alpha=0.25, linewidth=0)
            axes.plot(x, y, color=colour, linewidth=1.2)
            axes.axvline(float(self._places((mean,))[0]), color=colour, **_MEAN)
        ticks = _STRETCHED_TICKS if self.stretched else _TICKS
        axes.set_xlim(0, DIGITS if self.stretched else 1)
        axes.set_xticks(self._places(ticks), [f"{tick:g}" for tick in ticks])
        axes.locator_params(axis="y", nbins=3)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(r"$p_{\max}$", parse_math=True, labelpad=1)
        title = f"{each.label} (chosen)" if each.chosen else each.label
        axes.set_title(wrapped(title, width), weight="bold" if each.chosen else "normal")
        if each.chosen:
            axes.set_facecolor(CHOSEN)


def _draw_bars(axes: Any, each: Surrogate) -> None:
    heights = (each.accuracy, each.confidence)
    bars = axes.bar((0, 1), heights, width=0.62, color=(DARK, LIGHT))
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
        Line2D([], [], color=MUTED, **_MEAN),
        Patch(facecolor=DARK),
        Patch(facecolor=LIGHT),
    ]
    return handles, [target, "surrogate set", "mean", "accuracy", "confidence"]
