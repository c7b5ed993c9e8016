"""Figures of studies: numbers and words in; a picture, and a JSON file of the numbers, out.

A kind of figure is a frozen dataclass that holds everything it shows, in the units shown (percent
where it says percent). :func:`write_figure` draws it, :func:`read_figure` reads it back.
"""

from __future__ import annotations

import json
import math
import os
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from shiftcal import charts
from shiftcal.errors import FileError, require
from shiftcal.files import atomic_write, parsing, read_json
from shiftcal.numerics.samples import DIGITS, stretch
from shiftcal.types import Floats

FORMAT, VERSION = "shiftcal-figure", 1
# Inches: the text width of most journals and of A4 with its margins.
WIDTH = 7.0
# Points at the printed width, and how many letters of that size fit into an inch.
_SMALL, _LARGE = 8.0, 10.0
_LETTERS = 17.5
# Target and surrogate set, as in Salvador et al., 2021.
_BLUE, _ORANGE = "#0072B2", "#E69F00"
_CHOSEN = "#FFF3D6"


def stretched_grid(points: int) -> Floats:
    """Values of p_max at equal distances on the stretched axis, from 0 to its end."""
    return 1 - 10 ** -np.linspace(0.0, DIGITS, points)


@dataclass(frozen=True, kw_only=True)
class FigureData(ABC):
    """Everything a figure shows, in the units shown: panels under one title and one legend.

    Attributes:
        kind: What the figure is called in its file.
        title: Above the picture; empty for none.
        note: In small print below it: what an interval is, how many repetitions.
    """

    # Checks of the types when a figure is read.
    __pydantic_config__ = {"extra": "forbid", "allow_inf_nan": False}  # noqa: RUF012
    kind: ClassVar[str]
    # Height of a panel in inches, and how many stand in a row at most.
    _height: ClassVar[float] = 2.9
    _most_columns: ClassVar[int] = 3

    title: str = ""
    note: str = ""

    @abstractmethod
    def _panels(self) -> Sequence[Any]:
        """What each panel shows."""

    @abstractmethod
    def _draw_panel(self, axes: Any, panel: Any, width: float) -> str:
        """Draw a panel as wide as that, with labels for the legend, and return its y label."""

    def _small_print(self) -> str:
        return self.note

    def draw(self) -> Any:
        """A ``matplotlib.figure.Figure``, without pyplot and without changing any setting.

        Raises:
            MissingExtra: If matplotlib is not installed.
        """
        figures = require("matplotlib.figure", extra="plot", needed_by="a figure")
        panels = self._panels()
        rows = math.ceil(len(panels) / self._most_columns)
        columns = math.ceil(len(panels) / rows)
        height = self._height * (1 if rows == 1 else 0.8 * rows)
        sizes = {f"{axis}tick.labelsize": _SMALL for axis in "xy"} | {"legend.fontsize": _SMALL}
        sizes |= {"font.size": _SMALL, "axes.labelsize": _SMALL, "axes.titlesize": _SMALL + 0.5}
        with charts.applied(sizes):
            figure = figures.Figure(figsize=(WIDTH, height), layout="constrained")
            grid = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
            for index, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
                y_label = self._draw_panel(axes, panel, (WIDTH - 0.6) / columns)
                if index % columns == 0:
                    axes.set_ylabel(y_label)
            for axes in grid[len(panels) :]:
                axes.set_visible(False)
            low = min(axes.dataLim.ymin for axes in grid[: len(panels)])
            if 0 <= low < 0.6 * max(axes.dataLim.ymax for axes in grid[: len(panels)]):
                grid[0].set_ylim(bottom=0)
            _add_words(figure, height, self.title, self._small_print())
            return figure


def _add_words(figure: Any, height: float, title: str, note: str) -> None:
    """Title and legend above the picture, the note below it, in strips of their own."""
    title, note = textwrap.fill(title, int(0.65 * WIDTH * _LETTERS)), _wrapped(note, WIDTH)
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    longest = max(map(len, entries), default=0)
    columns = max(1, min(len(entries), int(WIDTH * _LETTERS) // (longest + 8)))
    strips = [
        0.18 * (title.count("\n") + 1) + 0.06 if title else 0.0,
        0.19 * math.ceil(len(entries) / columns) + 0.06 if entries else 0.0,
        0.15 * (note.count("\n") + 1) + 0.06 if note else 0.0,
    ]
    total = height + sum(strips)
    figure.set_size_inches(WIDTH, total)
    figure.get_layout_engine().set(rect=(0, strips[2] / total, 1, height / total))
    style: dict[str, Any] = {"x": 0.01, "ha": "left", "in_layout": False}
    if title:
        y = 1 - 0.06 / total
        figure.text(y=y, s=title, va="top", size=_LARGE, weight="bold", **style)
    if note:
        figure.text(y=0.06 / total, s=note, va="bottom", color=charts.MUTED, **style)
    if entries:
        style = {"loc": "upper center", "bbox_to_anchor": (0.5, 1 - strips[0] / total)}
        style |= {"ncols": columns, "columnspacing": 1.4, "borderpad": 0.2}
        legend = figure.legend(entries.values(), entries.keys(), **style)
        legend.set_in_layout(False)


def _wrapped(text: str, inches: float) -> str:
    """The text in lines of small print that fit into a width; long words stay whole."""
    letters = max(1, int(inches * _LETTERS))
    return "\n".join(
        textwrap.fill(line, letters, break_long_words=False) for line in text.split("\n")
    )


def _mark(axes: Any, places: Sequence[float], names: Sequence[str], room: float) -> None:
    """Ticks with names in lines, slanted where they do not fit into that many inches each."""
    lines = [_wrapped(name, room) for name in names]
    longest = max(len(part) for name in lines for part in name.split("\n"))
    if longest + 1 <= room * _LETTERS:
        axes.set_xticks(places, lines)
    else:
        axes.set_xticks(places, names, rotation=30, ha="right", rotation_mode="anchor")
    axes.minorticks_off()


def _mark_names(axes: Any, names: Sequence[str], width: float) -> None:
    """Names at 0, 1, 2, ..., separated by light lines."""
    _mark(axes, range(len(names)), names, 0.95 * width / len(names))
    for place in range(1, len(names)):
        axes.axvline(place - 0.5, color=charts.GRID, linewidth=0.6, zorder=0)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.tick_params(axis="x", length=0)


@dataclass(frozen=True, kw_only=True)
class Series:
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


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Several series over one x.

    Attributes:
        x: Rising numbers, whose points are joined; or names, which stand at equal distances.
        series: At least one, with different keys.
        x_label: With its unit.
        title: Above the panel; empty for none.
        log_x: Whether equal distances are equal ratios.
    """

    x: tuple[float, ...] | tuple[str, ...]
    series: tuple[Series, ...]
    x_label: str
    title: str = ""
    log_x: bool = False


@dataclass(frozen=True, kw_only=True)
class Lines(FigureData):
    """Series over x in panels side by side, which share the y axis and one legend.

    Attributes:
        panels: At least one. A key has the same label in all of them.
        y_label: With its unit, such as ``"ECE (%)"``.
        intervals: Vertical bars, the series side by side, or bands.
    """

    kind: ClassVar[str] = "lines"

    panels: tuple[Panel, ...]
    y_label: str
    intervals: Literal["bars", "bands"] = "bars"

    def _panels(self) -> Sequence[Panel]:
        return self.panels

    def _draw_panel(self, axes: Any, panel: Panel, width: float) -> str:
        style = charts.looks(series.key for one in self.panels for series in one.series)
        numbers = [x for x in panel.x if not isinstance(x, str)]
        joined = bool(numbers)
        bands = self.intervals == "bands"
        apart = not bands and any(series.low for series in panel.series)
        spread = 0.7 if not joined else 0.34 if apart else 0.0
        if panel.log_x:
            axes.set_xscale("log")
        places = numbers or [float(i) for i in range(len(panel.x))]
        for index, series in enumerate(panel.series):
            x = charts.shifted(places, index, len(panel.series), spread=spread, log=panel.log_x)
            missing = (None,) * len(x)
            y, low, high = (
                np.array(part or missing, np.float64)
                for part in (series.y, series.low, series.high)
            )
            look, label = style[series.key], series.label
            charts.draw_series(axes, x, y, low, high, look, label=label, joined=joined, bands=bands)
        if numbers:
            seen = np.log(numbers) if panel.log_x else np.array(numbers)
            least = np.diff(seen).min(initial=np.inf) / max(np.ptp(seen), 1e-9)
            _mark(axes, numbers, [f"{value:,.10g}" for value in numbers], 0.85 * least * width)
        else:
            _mark_names(axes, [str(x) for x in panel.x], width)
        axes.set_title(_wrapped(panel.title, width))
        axes.set_xlabel(_wrapped(panel.x_label, width))
        axes.grid(axis="y")
        return self.y_label


@dataclass(frozen=True, kw_only=True)
class BoxSeries:
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

    Its parts are explained below it, after the note.

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

    def _panels(self) -> Sequence[tuple[BoxSeries, ...]]:
        return (self.series,)

    def _draw_panel(self, axes: Any, panel: tuple[BoxSeries, ...], width: float) -> str:
        style = charts.looks(series.key for series in panel)
        step = 0.82 / len(panel)
        for index, series in enumerate(panel):
            offset = (index - (len(panel) - 1) / 2) * step
            boxes = {g + offset: values for g, values in enumerate(series.values) if values}
            colour = style[series.key].colour
            edge = {"markeredgecolor": colour, "markeredgewidth": 0.7}
            drawn = axes.boxplot(
                list(boxes.values()),
                positions=list(boxes),
                widths=min(0.78 * step, 0.3),
                showmeans=True,
                showcaps=False,
                patch_artist=True,
                manage_ticks=False,
                boxprops={"facecolor": (colour, 0.33), "edgecolor": colour, "linewidth": 0.9},
                medianprops={"color": colour, "linewidth": 2.0, "solid_capstyle": "butt"},
                whiskerprops={"color": colour, "linewidth": 0.9},
                flierprops={**edge, "marker": "o", "markersize": 2.2},
                meanprops={**edge, "marker": "D", "markersize": 3.2, "markerfacecolor": "white"},
            )
            drawn["boxes"][0].set_label(series.label)
        _mark_names(axes, self.groups, width)
        axes.set_xlabel(self.x_label)
        axes.grid(axis="y")
        return self.y_label

    def _small_print(self) -> str:
        parts = "Boxes: quartiles; whiskers: values within 1.5 times the box's height of it; "
        return f"{self.note} {parts}circles: values beyond; diamonds: means.".lstrip()


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """One method's bins.

    Attributes:
        key: The method.
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


@dataclass(frozen=True, kw_only=True)
class CalibrationPlots(FigureData):
    """A reliability diagram per method: accuracy of every bin over its mean confidence.

    Attributes:
        panels: At least one.
    """

    kind: ClassVar[str] = "calibration"
    _height: ClassVar[float] = 2.8
    _most_columns: ClassVar[int] = 4

    panels: tuple[Reliability, ...]

    def _panels(self) -> Sequence[Reliability]:
        return self.panels

    def _draw_panel(self, axes: Any, panel: Reliability, width: float) -> str:
        x, y = (np.array(part, np.float64) for part in (panel.confidence, panel.accuracy))
        look = charts.looks(one.key for one in self.panels)[panel.key]
        charts.draw_bins(axes, x, y, y, y, look, end=100.0)
        axes.set_xticks([0, 50, 100])
        axes.set_yticks([0, 50, 100])
        axes.grid()
        temperature = "" if panel.temperature is None else f", T = {panel.temperature:.2f}"
        axes.set_title(f"{_wrapped(panel.label, width)}\nECE {panel.ece:.2f} %{temperature}")
        axes.set_xlabel("confidence (%)")
        return "accuracy (%)"


@dataclass(frozen=True, kw_only=True)
class Surrogate:
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
    """Densities of the target's p_max and of every surrogate's; below each, accuracy and ECE.

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

    def _panels(self) -> Sequence[Surrogate]:
        return self.surrogates

    def _places(self, p_max: Any) -> Floats:
        """Where values of p_max stand on the axis."""
        values = np.asarray(p_max, np.float64)
        return stretch(values) if self.stretched else values

    def _draw_panel(self, axes: Any, panel: Surrogate, width: float) -> str:
        x = self._places(self.grid)
        for y, mean, colour, label in (
            (panel.density, panel.mean, _ORANGE, "surrogate set, and its mean"),
            (self.target, self.target_mean, _BLUE, f"{self.target_label}, and its mean"),
        ):
            place = float(self._places(mean))
            charts.draw_density(axes, x, y, place, colour, label=label, fill=True, linewidth=1.2)
        if self.stretched:
            charts.mark_stretched(axes, [0.5, 0.9, 0.99, 0.999, 0.99999])
        axes.set_xlim(x[0], x[-1])
        title = f"{panel.label} (chosen)" if panel.chosen else panel.label
        axes.set_title(_wrapped(title, width), weight="bold" if panel.chosen else "normal")
        axes.set_facecolor(_CHOSEN if panel.chosen else "none")
        means = f"accuracy {panel.accuracy:.1f} %, confidence {panel.confidence:.1f} %"
        axes.set_xlabel(f"p_max\n{means}\nECE {panel.ece:.2f} %")
        return "density"

    def _small_print(self) -> str:
        unit = "factor of 10 of 1 - p_max" if self.stretched else "unit of p_max"
        return f"{self.note} Below each set: the target under its map. Densities: per {unit}."


_KINDS: dict[str, type[FigureData]] = {
    cls.kind: cls for cls in (Lines, Boxes, CalibrationPlots, Densities)
}


def write_figure(data: FigureData, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write ``<name>.png`` (200 dpi), ``<name>.svg`` and ``<name>.json``, each atomically.

    The same data gives the same bytes with the same matplotlib. The JSON holds the data.

    Args:
        data: The figure.
        folder: Must exist.
        name: Of the files, without an ending.

    Raises:
        FileError: If a file cannot be written.
        MissingExtra: If matplotlib is not installed.
    """
    with charts.applied({}):
        figure = data.draw()
        contents = {suffix: charts.picture(figure, suffix) for suffix in ("png", "svg")}
    document = {"format": FORMAT, "version": VERSION, "kind": data.kind, **asdict(data)}
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    contents["json"] = f"{text}\n".encode()
    written = []
    for suffix, content in contents.items():
        path = Path(folder) / f"{name}.{suffix}"
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)
        written.append(path)
    return written


def read_figure(path: str | os.PathLike[str]) -> FigureData:
    """The data of a figure that :func:`write_figure` wrote.

    Raises:
        FileError: If the file is missing, damaged, of another kind, or from a newer version.
    """
    from pydantic import TypeAdapter

    source, kind = Path(path), "the data of a figure"
    fix = "Name the .json file next to the picture, or write the figure again."
    document = read_json(source, kind, fix=fix)
    with parsing(source, kind, fix=fix):
        if (document.pop("format"), document.pop("version")) != (FORMAT, VERSION):
            raise FileError(f"{source} is not {kind} in format {FORMAT!r}, version {VERSION}.")
        figure: FigureData = TypeAdapter(_KINDS[document.pop("kind")]).validate_python(document)
        return figure
