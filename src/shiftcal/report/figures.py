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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
from scipy.integrate import trapezoid

from shiftcal.checks import check_confidence
from shiftcal.errors import FileError, InputError, require
from shiftcal.files import atomic_write, parsing, read_json
from shiftcal.numerics.samples import DIGITS, stretch
from shiftcal.plot.density import kernel_density
from shiftcal.plot.style import (
    BLUE,
    CHOSEN,
    DARK,
    GRID,
    INK,
    LIGHT,
    MUTED,
    ORANGE,
    Look,
    beside,
    looks,
    tint,
)
from shiftcal.registry import FIGURES
from shiftcal.types import Confidence, Floats

__all__ = [
    "BoxSeries",
    "Boxes",
    "CalibrationPlots",
    "Densities",
    "FigureData",
    "Lines",
    "Panel",
    "Reliability",
    "Series",
    "Surrogate",
    "density",
    "read_figure",
    "stretched_grid",
    "write_figure",
]

FORMAT, VERSION = "shiftcal-figure", 1
kinds = FIGURES.names


def stretched_grid(points: int) -> Floats:
    """Values of p_max at equal distances on the stretched axis, from 0 to its end."""
    return 1 - 10 ** -np.linspace(0.0, DIGITS, points)


def density(p_max: Confidence, grid: Floats, *, stretched: bool = False) -> Floats:
    """Density ``(m,)`` of p_max ``(n,)`` on a rising grid ``(m,)``, both in [0, 1].

    See :func:`shiftcal.plot.density.kernel_density`. Over a stretched grid, which ends before 1,
    it integrates to the share of values within the grid.
    """
    points = np.asarray(grid, np.float64)
    _check_rising("a density", points.ravel().tolist())
    return kernel_density(check_confidence(p_max, name="p_max"), points, stretched=stretched)


def _check_rising(owner: str, values: Sequence[float]) -> None:
    rising = all(before < after for before, after in pairwise(values))
    if not values or not rising or not (values[0] >= 0 and values[-1] <= 1):  # also for NaN
        raise InputError(f"{owner} must have rising values within [0, 1]; got {values!r:.60}.")


def _check_lengths(owner: str, **parts: Sequence[Any] | None) -> None:
    sizes = {name: len(part) for name, part in parts.items() if part is not None}
    if len(set(sizes.values())) > 1:
        raise InputError(f"{owner} must have as many values everywhere; got {sizes}.")


def _check_keys(owner: str, series: Sequence[Any]) -> None:
    keys = [one.key for one in series]
    if not keys or len(set(keys)) < len(keys):
        raise InputError(f"{owner} must have at least one series, with different keys; got {keys}.")


@dataclass(frozen=True, kw_only=True)
class FigureData(ABC):
    """Everything a figure shows, in the units shown.

    Attributes:
        kind: What the figure is called in its file.
        title: Above the picture; empty for none.
        note: In small print below it: what an interval is, how many repetitions.
    """

    # Checks of the types when a figure is read.
    __pydantic_config__ = {"extra": "forbid", "allow_inf_nan": False}  # noqa: RUF012
    kind: ClassVar[str]

    title: str = ""
    note: str = ""

    @final
    def to_dict(self) -> dict[str, Any]:
        """Its values with its kind; :meth:`from_dict` gives it back, equal."""
        return {"kind": self.kind, **asdict(self)}

    @final
    @staticmethod
    def from_dict(values: dict[str, Any]) -> FigureData:
        """The figure of the kind that the values name.

        Raises:
            UnknownName: If there is no such kind.
            InputError: If a value is missing, unknown, not of its type, or does not fit others.
        """
        from pydantic import TypeAdapter, ValidationError

        values = dict(values)
        cls = FIGURES.get(values.pop("kind", None))
        try:
            figure: FigureData = TypeAdapter(cls).validate_python(values)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise InputError(
                f"the figure {cls.kind!r} is damaged at {where}: {first['msg']}."
            ) from error
        return figure

    @final
    def draw(self) -> Any:
        """A ``matplotlib.figure.Figure``, without pyplot and without changing any setting.

        Raises:
            MissingExtra: If matplotlib is not installed.
        """
        with applied():
            return self._drawn()

    @abstractmethod
    def _drawn(self) -> Any:
        """The figure; the look is applied."""


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
    # No date and no program, so that the same figure is the same file.
    silent = {"png": ("Software",), "svg": ("Creator", "Date", "Format", "Type")}
    contents = {}
    with applied():
        figure = data.draw()
        for suffix, keys in silent.items():
            content = BytesIO()
            figure.savefig(content, format=suffix, dpi=200, metadata=dict.fromkeys(keys))
            contents[suffix] = content.getvalue()
    document = {"format": FORMAT, "version": VERSION, **data.to_dict()}
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    contents["json"] = f"{text}\n".encode()
    written = []
    for suffix, content_bytes in contents.items():
        path = Path(folder) / f"{name}.{suffix}"
        with atomic_write(path) as temporary:
            temporary.write_bytes(content_bytes)
        written.append(path)
    return written


def read_figure(path: str | os.PathLike[str]) -> FigureData:
    """The data of a figure that :func:`write_figure` wrote.

    Raises:
        FileError: If the file is missing, damaged, of another kind, or from a newer version.
    """
    source, kind = Path(path), "the data of a figure"
    document = read_json(source, kind, fix="Write the figure again.")
    head = (
        [document.pop(k, None) for k in ("format", "version")] if isinstance(document, dict) else []
    )
    if head != [FORMAT, VERSION]:
        raise FileError(
            f"{source} is not {kind} in format {FORMAT!r}, version {VERSION}. Name the .json file "
            "next to the picture, or write the figure again."
        )
    with parsing(source, kind, fix="Write the figure again."):
        return FigureData.from_dict(document)


# Points at the printed width of a page, which is that of every figure.
SMALL, NORMAL, LARGE = 8.0, 8.5, 10.0

SETTINGS: dict[str, Any] = {
    "font.size": SMALL,
    "axes.labelsize": NORMAL,
    "axes.titlesize": NORMAL,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "text.color": INK,
    "text.parse_math": False,  # a dollar or an underscore in a label is itself
    **{
        f"{axis}tick.{name}": value
        for axis in "xy"
        for name, value in {
            "labelsize": SMALL,
            "color": MUTED,
            "labelcolor": INK,
            "major.width": 0.6,
            "major.size": 2.5,
        }.items()
    },
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "mathtext.fontset": "dejavusans",
    "svg.fonttype": "none",  # text stays text: it can be searched and edited
    "svg.hashsalt": "shiftcal",  # without it every file has other ids
}


@contextmanager
def applied() -> Iterator[None]:
    """The look within the block, whatever the user's own settings; they are back after it."""
    styles = require("matplotlib.style", extra="plot", needed_by="a figure")
    with styles.context(["default", SETTINGS]):
        yield


def with_grid(axes: Any) -> None:
    """Light lines across, for reading values."""
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.tick_params(axis="y", length=0)


# Inches: the text width of most journals and of A4 with its margins.
WIDTH = 7.0
_WITHIN = WIDTH - 0.1
_EDGE = 0.04
# A letter of a short label is about this many times as wide as its size, a line so many as high.
_LETTER, _LINE = 0.56, 1.35
_POINTS = 72


def letters(inches: float) -> int:
    """How many letters of small print fit into a width."""
    return max(1, int(inches * _POINTS / (_LETTER * SMALL)))


def wrapped(text: str, inches: float, *, hyphens: bool = False) -> str:
    """The text in lines that fit into a width; its own line breaks stay, long words too."""
    lines = (
        textwrap.fill(line, letters(inches), break_long_words=False, break_on_hyphens=hyphens)
        for line in text.split("\n")
    )
    return "\n".join(lines)


class _Sheet:
    """A figure of the usual width; :meth:`finish` adds strips for title, legend and note.

    The strips come on top of the height, so that words never press the picture.

    Args:
        height: Of the picture itself, in inches.
        share: Of the width that the picture takes, in the middle.
    """

    def __init__(self, height: float, *, share: float = 1.0) -> None:
        figures = require("matplotlib.figure", extra="plot", needed_by="a figure")
        canvas = require("matplotlib.backends.backend_agg", extra="plot", needed_by="a figure")
        self.height, self.share = height, share
        self.figure: Any = figures.Figure(figsize=(WIDTH, height), layout="constrained")
        self._renderer = canvas.FigureCanvasAgg(self.figure).get_renderer()

    def finish(
        self, handles: Sequence[Any], labels: Sequence[str], *, title: str, note: str
    ) -> Any:
        """The figure with its words around the picture: title and legend above, note below.

        Args:
            handles: What the legend explains.
            labels: As many.
            title: May be empty.
            note: May be empty.
        """
        title, note = self._broken(title, LARGE, "bold"), self._broken(note, SMALL, "normal")
        legend, tall = self._legend(handles, [wrapped(label, WIDTH - 0.6) for label in labels])
        above, below = _strip(title, LARGE), _strip(note, SMALL)
        total = above + tall + self.height + below
        self.figure.set_size_inches(WIDTH, total)
        area = ((1 - self.share) / 2, below / total, self.share, self.height / total)
        self.figure.get_layout_engine().set(rect=area, w_pad=_EDGE, h_pad=_EDGE)
        legend.set_bbox_to_anchor((0.5, 1 - above / total), self.figure.transFigure)
        put = {"x": 0.06 / WIDTH, "ha": "left", "in_layout": False, "linespacing": _LINE - 0.15}
        if title:
            y = 1 - 0.06 / total
            self.figure.text(y=y, s=title, va="top", size=LARGE, weight="bold", **put)
        if note:
            self.figure.text(y=0.06 / total, s=note, va="bottom", size=SMALL, color=MUTED, **put)
        return self.figure

    def _broken(self, text: str, size: float, weight: str) -> str:
        """The text in lines as long as the page is wide; its own line breaks stay."""
        fonts = require("matplotlib.font_manager", extra="plot", needed_by="a figure")
        font = fonts.FontProperties(size=size, weight=weight)
        lines: list[str] = []
        for given in text.split("\n"):
            line = ""
            for word in given.split(" "):
                longer = f"{line} {word}" if line else word
                width, _, _ = self._renderer.get_text_width_height_descent(longer, font, False)
                if line and width > _WITHIN * self.figure.dpi:
                    lines.append(line)
                    line = word
                else:
                    line = longer
            lines.append(line)
        return "\n".join(lines)

    def _legend(self, handles: Sequence[Any], labels: Sequence[str]) -> tuple[Any, float]:
        """The legend in as few rows as fit, and its height in inches."""
        for rows in range(1, len(labels) + 1):
            legend = self.figure.legend(
                handles,
                labels,
                loc="upper center",
                ncols=math.ceil(len(labels) / rows),
                columnspacing=1.4,
                handlelength=2.0,
                handletextpad=0.5,
                borderpad=0.2,
                borderaxespad=0.3,
            )
            legend.set_in_layout(False)  # its strip is kept free for it
            box = legend.get_window_extent(self._renderer)
            if box.width <= _WITHIN * self.figure.dpi or rows == len(labels):
                break
            legend.remove()
        return legend, box.height / self.figure.dpi + 0.08


def _strip(text: str, size: float) -> float:
    lines = text.count("\n") + 1 if text else 0
    return lines * _LINE * size / _POINTS + (0.08 if text else 0.0)


_SLANT = 30
# Inches between slanted lines of small print, measured along the axis.
_SLANTED_APART = 0.24


def columns_for(panels: int, most: int = 3) -> int:
    """How many panels stand in a row, so that few places of the last row stay empty."""
    rows = math.ceil(panels / most)
    return math.ceil(panels / rows)


def mark_numbers(axes: Any, x: Sequence[float], *, log: bool, width: float) -> None:
    """Ticks at the rising numbers ``x``: all, slanted if need be, or those that fit side by side.

    Of those that do not fit on a logarithmic axis, powers of ten are the last to be left out.
    ``width`` is that of the axes, in inches.
    """
    seen = [math.log(value) if log else value for value in x]
    span = (seen[-1] - seen[0]) * 1.1 or 1.0
    places = [(value - seen[0]) / span * width for value in seen]
    words = [f"{value:,.10g}" for value in x]
    kept: list[int] = []
    for i in sorted(range(len(x)), key=lambda i: not (log and math.log10(x[i]).is_integer())):
        if all(
            letters(abs(places[i] - places[j])) >= (len(words[i]) + len(words[j])) / 2 + 1.5
            for j in kept
        ):
            kept.append(i)
    kept.sort()
    apart = min((b - a for a, b in pairwise(places)), default=width)
    turned = {}
    if len(kept) < len(x) and apart >= _SLANTED_APART:
        kept = list(range(len(x)))
        turned = {"rotation": _SLANT, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks([x[i] for i in kept], [words[i] for i in kept], **turned)
    axes.minorticks_off()


def mark_categories(axes: Any, names: Sequence[str], *, width: float) -> None:
    """Names at 0, 1, 2, ..., in lines where that is enough, else slanted; parted by light lines."""
    room = 0.95 * width / len(names)
    lines = [wrapped(name, room, hyphens=True) for name in names]
    longest = max(len(part) for name in lines for part in name.split("\n"))
    places = range(len(names))
    if longest <= letters(room):
        axes.set_xticks(places, lines)
    else:
        axes.set_xticks(places, names, rotation=_SLANT, ha="right", rotation_mode="anchor")
    for place in places[1:]:
        axes.axvline(place - 0.5, color=GRID, linewidth=0.6, zorder=0)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.tick_params(axis="x", length=0)


def from_zero(axes: Any, values: Sequence[float]) -> None:
    """Let y start at 0 if nothing is below it and the values are not all far above it."""
    if values and 0 <= min(values) < 0.6 * max(values):
        axes.set_ylim(bottom=0)


# The boxes of a group take this much of its width together.
_TOGETHER = 0.82
_LEFT = 0.6
_SMALL_PRINT = (
    "Boxes: quartiles; whiskers: values within 1.5 times the box's height of it; circles: values "
    "beyond; diamonds: means."
)


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

    def __post_init__(self) -> None:
        if not self.groups:
            raise InputError("a figure of boxes must have at least one group.")
        _check_keys("a figure of boxes", self.series)
        for series in self.series:
            _check_lengths(f"the series {series.label!r}", groups=self.groups, values=series.values)

    def _drawn(self) -> Any:
        from matplotlib.patches import Patch

        page = _Sheet(3.0)
        axes = page.figure.subplots()
        with_grid(axes)
        style = looks(series.key for series in self.series)
        step = _TOGETHER / len(self.series)
        handles = []
        for index, series in enumerate(self.series):
            offset = (index - (len(self.series) - 1) / 2) * step
            shown = {g + offset: values for g, values in enumerate(series.values) if values}
            _draw_boxes(axes, shown, style[series.key], width=min(0.78 * step, 0.3))
            colour = style[series.key].colour
            handles.append(Patch(facecolor=tint(colour), edgecolor=colour, linewidth=0.9))
        mark_categories(axes, self.groups, width=WIDTH - _LEFT)
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.y_label)
        from_zero(axes, [v for series in self.series for group in series.values for v in group])
        labels = [series.label for series in self.series]
        told = "whiskers" in self.note
        note = self.note if told else " ".join(filter(None, (self.note, _SMALL_PRINT)))
        return page.finish(handles, labels, title=self.title, note=note)


def _draw_boxes(
    axes: Any, boxes: dict[float, tuple[float, ...]], look: Look, *, width: float
) -> None:
    """Tukey's boxes: quartiles, whiskers within 1.5 times the height of the box, means."""
    from matplotlib.cbook import boxplot_stats

    line = {"color": look.colour, "linewidth": 0.9}
    small = {"markersize": 2.2, "markeredgecolor": look.colour, "markeredgewidth": 0.6}
    mean = {"markersize": 3.2, "markeredgecolor": look.colour, "markeredgewidth": 0.8}
    axes.bxp(
        [boxplot_stats(sorted(values))[0] for values in boxes.values()],
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
        meanprops={**mean, "marker": "D", "markerfacecolor": "white"},
    )


_MOST_COLUMNS = 4
_LABELS = ("accuracy,\nconfidence (%)", "share\n(%)")
# How much of the colour is there: both are seen where they overlap.
_ACCURACY, _CONFIDENCE = 0.75, 0.55
# Bins above it are too narrow to be seen, so they are counted.
_NARROW = 0.99


@dataclass(frozen=True, kw_only=True)
class Reliability:
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

    def __post_init__(self) -> None:
        owner = f"the method {self.label!r}"
        parts = {"accuracy": self.accuracy, "confidence": self.confidence, "count": self.count}
        _check_lengths(owner, bins=self.edges[1:], **parts)
        _check_rising(owner, self.edges)
        filled = [count > 0 for count in self.count]
        for values in (self.accuracy, self.confidence):
            if not any(filled) or filled != [value is not None for value in values]:
                raise InputError(
                    f"{owner} must have an accuracy and a confidence in bins with samples, and "
                    f"only there; got counts {self.count} and {values}."
                )

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

    def __post_init__(self) -> None:
        if not self.panels:
            raise InputError("a figure of calibration plots must have at least one panel.")

    def _drawn(self) -> Any:
        from matplotlib.patches import Patch

        columns = columns_for(len(self.panels), _MOST_COLUMNS)
        rows = math.ceil(len(self.panels) / columns)
        shares = not all(panel.even for panel in self.panels)
        ratios = [4, 1] if shares else [1]
        high = len(ratios)
        page = _Sheet((2.4 if shares else 2.0) * rows, share=min(1.0, (columns + 1) / 4))
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
                heights = 100 * np.array(panel.count) / sum(panel.count)
                look = {"align": "edge", "color": MUTED, "edgecolor": "white"}
                parts[1].bar(panel.edges[:-1], heights, np.diff(panel.edges), **look)
                parts[1].tick_params(axis="y", length=0)
            parts[-1].set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            parts[-1].tick_params(axis="x", labelbottom=True)
            parts[-1].set_xlabel(r"$p_{\max}$", parse_math=True, labelpad=1)
            if column == 0:
                for axes, label in zip(parts, _LABELS, strict=False):
                    axes.set_ylabel(label)
        for axes in grid[-high:, len(self.panels) - (rows - 1) * columns :].ravel():
            axes.set_visible(False)
        narrow = ", ".join(f"{one.label} {one.narrow}" for one in self.panels if one.narrow)
        hidden = f"Bins above {_NARROW}, too narrow to be seen: {narrow}." if narrow else ""
        note = " ".join(filter(None, (self.note, hidden)))
        accuracy = Patch(facecolor=BLUE, alpha=_ACCURACY)
        confidence = Patch(facecolor=ORANGE, alpha=_CONFIDENCE)
        handles = [accuracy, confidence, (accuracy, confidence), Patch(facecolor=MUTED)]
        labels = ["accuracy", "mean confidence", "both", "share of samples"]
        count = 4 if shares else 3
        return page.finish(handles[:count], labels[:count], title=self.title, note=note)


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


# A stretched axis has longer numbers at its ticks, and needs the room for means side by side.
_DENSITIES_MOST_COLUMNS, _MOST_STRETCHED = 6, 3
_TICKS = (0.0, 0.5, 1.0)
_STRETCHED_TICKS = (0.5, 0.9, 0.99, 0.999, 0.99999)
_MEAN: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (3, 1.5))}


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

    def __post_init__(self) -> None:
        if not self.surrogates:
            raise InputError("a figure of densities must have at least one surrogate.")
        for each in self.surrogates:
            owner = f"the surrogate {each.label!r}"
            _check_lengths(owner, grid=self.grid, target=self.target, density=each.density)
        _check_rising("a figure of densities", self.grid)

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
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        most = _MOST_STRETCHED if self.stretched else _DENSITIES_MOST_COLUMNS
        bands = math.ceil(len(self.surrogates) / most)
        columns = math.ceil(len(self.surrogates) / bands)
        page = _Sheet(
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
        handles = [
            Line2D([], [], color=BLUE, linewidth=1.2),
            Line2D([], [], color=ORANGE, linewidth=1.2),
            Line2D([], [], color=MUTED, **_MEAN),
            Patch(facecolor=DARK),
            Patch(facecolor=LIGHT),
        ]
        labels = [self.target_label, "surrogate set", "mean", "accuracy", "confidence"]
        return page.finish(handles, labels, title=self.title, note=note)

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


# How much of the way to the next x the series of one x may take together.
_SPREAD, _SPREAD_UNJOINED = 0.34, 0.7
_LEFT_OF_PANELS = 0.6


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

    def __post_init__(self) -> None:
        owner = f"the series {self.label!r}"
        _check_lengths(owner, y=self.y, low=self.low, high=self.high)
        ends = [(low, high) for low, high in zip(self.low or (), self.high or (), strict=False)]
        wrong = [(a, b) for a, b in ends if (a is None) != (b is None) or (a or 0) > (b or 0)]
        if (self.low is None) != (self.high is None) or wrong:
            raise InputError(
                f"{owner} must have intervals with both ends, in order; got low={self.low}, "
                f"high={self.high}."
            )


@dataclass(frozen=True, kw_only=True)
class Panel:
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

    def __post_init__(self) -> None:
        owner = f"the panel {self.title or self.x_label!r}"
        _check_keys(owner, self.series)
        for series in self.series:
            _check_lengths(f"{owner} with {series.label!r}", x=self.x, y=series.y)
        numbers = self.numbers
        if not self.x or any(after <= before for before, after in pairwise(numbers)):
            raise InputError(f"{owner} must have rising numbers x, or names; got {self.x}.")
        if self.log_x and (not numbers or numbers[0] <= 0):
            raise InputError(f"{owner} has log_x, so its x must be numbers above 0; got {self.x}.")

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

    def __post_init__(self) -> None:
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
        page = _Sheet(2.9 if rows == 1 else 2.3 * rows)
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
