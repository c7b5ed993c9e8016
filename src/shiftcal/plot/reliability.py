"""Reliability diagram: how often predictions are right, over how sure they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shiftcal.checks import check_count, check_fraction
from shiftcal.errors import InputError
from shiftcal.metrics import Binning, BinTable, bin_table, bootstrap, ece
from shiftcal.numerics.samples import exact_intervals
from shiftcal.plot.style import (
    axes_for,
    check_axes,
    curve_look,
    given_top1,
    ink,
    legend_text,
    name_axes,
    show_legend,
)
from shiftcal.types import Confidence, Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Beyond this many rows a bootstrap takes seconds, and its interval is as wide as the line.
_MOST_ROWS, _RESAMPLES = 50_000, 200
# The strip at the bottom that shows where the rows lie: its height, as a share of the axes.
_STRIP, _CELLS = 0.1, 50
_MANY_BINS = 40
# Markers at 1 are seen whole.
_END = 1.02


def reliability(
    confidence: object,
    correct: object = None,
    *,
    ax: Axes | None = None,
    label: str = "",
    n_bins: int = 15,
    binning: Binning = "size",
    level: float = 0.95,
    n_resamples: int | None = None,
    seed: int = 0,
    input: str = "logits",
    color: Any = None,
) -> Axes:
    """Accuracy of every bin over its mean confidence; a calibrated model is on the diagonal.

    The bins are those of :func:`shiftcal.bin_table`. Upright bars are Clopper and Pearson's
    intervals of the accuracies. The legend tells ECE, with its interval by
    :func:`shiftcal.bootstrap`, and the number of rows. The strip at the bottom shows where the rows
    lie, the highest of its steps always as high. A second call with the same ``ax`` adds a curve.

    Args:
        confidence: ``(n,)`` probability of the predicted class; or ``(n, k)`` logits or
            probabilities, or labelled :class:`~shiftcal.Scores`. Or a
            :class:`~shiftcal.metrics.BinTable`, such as that of a
            :class:`~shiftcal.ScoreStatistics`; it has no interval of ECE, and no strip.
        correct: ``(n,)`` whether each was right; beside rows and scores the labels.
        ax: Where to draw; a new figure by default.
        label: Name of the curve. A method's name brings its colour and marker, unless a curve on
            ``ax`` has that colour.
        n_bins: Number of bins.
        binning: ``"size"`` for bins of equally many rows, ``"width"`` for bins of equal width.
        level: Coverage of all intervals.
        n_resamples: Draws behind the interval of ECE; 0 for none. By default 200 for up to 50,000
            rows, and none for more.
        seed: Of those draws.
        input: What rows ``(n, k)`` are: ``"logits"`` or ``"probabilities"``.
        color: Any colour of matplotlib's; by default the next of a fixed cycle.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If the arrays cannot be used.
        MissingExtra: If matplotlib is not installed.
    """
    check_axes(ax, plot="reliability")
    check_fraction(level, name="level")
    c: Confidence | None = None
    error: Interval | float
    if isinstance(confidence, BinTable):
        if correct is not None:
            raise InputError("a BinTable knows what was right; leave correct out.")
        table, error = confidence, confidence.ece
    else:
        c, r = given_top1(confidence, correct, input=input)
        table = bin_table(c, r, n_bins=n_bins, binning=binning)
        error = table.ece
        if n_resamples is None:
            n_resamples = _RESAMPLES if len(c) <= _MOST_ROWS else 0
        check_count(n_resamples, name="n_resamples", least=0)
        if n_resamples and len(c) > 1:
            bins: dict[str, Any] = {"n_bins": n_bins, "binning": binning}
            error = bootstrap(ece, c, r, n_resamples=n_resamples, level=level, seed=seed, **bins)
    axes = axes_for(ax, size=(4.8, 4.8))
    _draw_diagonal(axes)
    curve = _draw_curve(axes, table, name=str(label), color=color, level=level)
    text = f"ECE {error:.4f}" if isinstance(error, float) else f"ECE {error}"
    rows = f"n = {int(table.count.sum()):,}\n{text}"
    curve.set_label(f"{legend_text(str(label))}, {rows}" if label else rows)
    if c is not None:
        counts, edges = np.histogram(c, bins=_CELLS, range=(0, 1))
        axes.stairs(
            _STRIP * counts / counts.max(),
            edges,
            transform=axes.get_xaxis_transform(),  # x as the data, y as a share of the axes
            fill=True,
            color=curve.lines[0].get_color(),
            alpha=0.25,
            zorder=2,
        )
    axes.set(xlim=(0, _END), ylim=(0, _END))
    name_axes(axes, x="confidence", y="accuracy")
    show_legend(axes)
    return axes


def _draw_diagonal(axes: Any) -> None:
    from matplotlib.lines import AxLine

    drawn = (line for line in axes.get_lines() if isinstance(line, AxLine))
    if not any(line.get_slope() == 1 and line.get_xy1() == (0, 0) for line in drawn):
        look = {"color": ink(axes), "alpha": 0.6, "linewidth": 1.0, "linestyle": (0, (4, 3))}
        axes.axline((0, 0), slope=1, zorder=1, **look)


def _draw_curve(axes: Any, table: BinTable, *, name: str, color: Any, level: float) -> Any:
    from matplotlib.colors import to_hex
    from matplotlib.container import ErrorbarContainer

    before = [one.lines[0] for one in axes.containers if isinstance(one, ErrorbarContainer)]
    used = frozenset(to_hex(line.get_color()) for line in before if line is not None)
    look = curve_look(axes, name, len(before), used=used)
    held = table.count > 0
    x, y, n = table.confidence[held], table.accuracy[held], table.count[held]
    low, high = exact_intervals(y * n, n, level=level)
    return axes.errorbar(
        x,
        y,
        yerr=(y - low, high - y),
        color=look.colour if color is None else color,
        marker=look.marker,
        markersize=5 if len(x) <= _MANY_BINS else 2,
        linewidth=1.0,
        elinewidth=1.0,
        zorder=3,
    )
