"""Reliability diagram: accuracy over confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shiftcal.checks import check_count, check_fraction
from shiftcal.errors import InputError
from shiftcal.metrics import Binning, BinTable, bin_table, bootstrap, ece
from shiftcal.numerics.samples import exact_intervals
from shiftcal.plot.style import (
    Look,
    axes_for,
    check_axes,
    ink,
    legend_text,
    name_axes,
    next_look,
    show_legend,
    top1,
)
from shiftcal.types import InputKind, Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Beyond this many rows a bootstrap takes seconds, and its interval is as wide as the line.
_MOST_ROWS, _RESAMPLES = 50_000, 200
# The strip at the bottom that shows where the rows lie: its height, as a share of the axes.
_STRIP, _CELLS = 0.1, 50
_MANY_BINS = 40


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
    input: InputKind = "logits",
    color: Any = None,
) -> Axes:
    """Accuracy of every bin over its mean confidence; a calibrated model is on the diagonal.

    The bins are those of :func:`shiftcal.bin_table`, the vertical bars Clopper and Pearson's
    intervals of the accuracies. The legend has ECE, with its interval by
    :func:`shiftcal.bootstrap`, and the number of rows; the strip at the bottom shows where the rows
    lie. A second call with the same ``ax`` adds a curve.

    Args:
        confidence: ``(n,)`` probability of the predicted class; or ``(n, k)`` logits or
            probabilities, or labelled :class:`~shiftcal.Scores`. Or a
            :class:`~shiftcal.metrics.BinTable`, such as that of a
            :class:`~shiftcal.ScoreStatistics`; it has no interval of ECE, and no strip.
        correct: ``(n,)`` whether each is correct; for rows and scores the labels.
        ax: Where to draw; default: a new figure.
        label: Name of the curve. A method's name brings its colour and marker, unless a curve on
            ``ax`` has that colour.
        n_bins: Number of bins.
        binning: ``"size"`` for bins of equally many rows, ``"width"`` for bins of equal width.
        level: Coverage of all intervals.
        n_resamples: Draws behind the interval of ECE; 0 for none. Default: 200 for up to 50,000
            rows, none for more.
        seed: Of those draws.
        input: What rows ``(n, k)`` are: ``"logits"`` or ``"probabilities"``.
        color: Any colour of matplotlib's; default: the next of a fixed cycle.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If the arrays cannot be used.
        MissingExtra: If matplotlib is not installed.
    """
    check_axes(ax, plot="reliability")
    check_fraction(level, name="level")
    c, error = None, None
    if isinstance(confidence, BinTable):
        if correct is not None:
            raise InputError("a BinTable has its accuracies; leave correct out.")
        table = confidence
    else:
        c, r = top1(confidence, correct, input=input)
        table = bin_table(c, r, n_bins=n_bins, binning=binning)
        if n_resamples is None:
            n_resamples = _RESAMPLES if len(c) <= _MOST_ROWS else 0
        check_count(n_resamples, name="n_resamples", least=0)
        if n_resamples and len(c) > 1:
            bins: dict[str, Any] = {"n_bins": n_bins, "binning": binning}
            error = bootstrap(ece, c, r, n_resamples=n_resamples, level=level, seed=seed, **bins)
    axes = axes_for(ax, size=(4.8, 4.8))
    look = next_look(axes, str(label))
    look = look if color is None else look._replace(colour=color)
    filled = table.count > 0
    x, y, n = table.confidence[filled], table.accuracy[filled], table.count[filled]
    low, high = exact_intervals(y * n, n, level=level)
    text = f"n = {int(table.count.sum()):,}\n{_ece_text(table, error)}"
    text = f"{legend_text(label)}, {text}" if label else text
    draw_bins(axes, x, y, low, high, look, label=text)
    if c is not None:
        draw_strip(axes, *np.histogram(c, bins=_CELLS, range=(0, 1)), look.colour)
    name_axes(axes, x="confidence", y="accuracy")
    show_legend(axes)
    return axes


def _ece_text(table: BinTable, error: Interval | None) -> str:
    return f"ECE {table.ece:.4f}" if error is None else f"ECE {error}"


def draw_bins(
    axes: Any, x: Any, y: Any, low: Any, high: Any, look: Look, *, label: str = "", end: float = 1.0
) -> None:
    """Accuracy ``y`` of every bin over its confidence ``x``, and the diagonal up to ``end``."""
    if not any(line.get_gid() == "diagonal" for line in axes.get_lines()):
        style = {"color": ink(axes), "alpha": 0.6, "linewidth": 1.0, "linestyle": (0, (4, 3))}
        axes.plot([0, end], [0, end], gid="diagonal", zorder=1, **style)
    axes.errorbar(
        x,
        y,
        yerr=np.maximum([np.subtract(y, low), np.subtract(high, y)], 0.0),  # not below by rounding
        color=look.colour,
        marker=look.marker,
        markersize=5 if len(x) <= _MANY_BINS else 2,
        linewidth=1.0,
        label=label,
        zorder=3,
    )
    # Markers at the ends are seen whole.
    axes.set(xlim=(0, 1.02 * end), ylim=(0, 1.02 * end))


def draw_strip(axes: Any, counts: Any, edges: Any, colour: str) -> None:
    """Where the rows lie, at the bottom of the axes; the highest step always has one height."""
    axes.stairs(
        _STRIP * counts / counts.max(),
        edges,
        transform=axes.get_xaxis_transform(),  # x as the data, y as a share of the axes
        fill=True,
        color=colour,
        alpha=0.25,
        zorder=2,
    )
