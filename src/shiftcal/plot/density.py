"""Densities of confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from shiftcal.checks import check_count
from shiftcal.errors import InputError
from shiftcal.methods.method import Selection
from shiftcal.numerics.samples import DIGITS, folded_density, gathered, scott_width, stretch
from shiftcal.plot.style import (
    axes_for,
    check_axes,
    columns,
    confidences,
    ink,
    legend_text,
    name_axes,
    next_look,
    ramp,
    show_legend,
)
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS, _CELLS = 401, 2000
_LEAST_WIDTH, _LEAST_STRETCHED = 0.005, 0.05
# More sets than these cannot be told apart by their colours.
_MOST_NAMED = 8
_STRETCHED_TICKS = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)


def kernel_density(
    confidence: Floats,
    grid: Floats,
    *,
    least: float = 0.0,
    stretched: bool = False,
    cells: int | None = None,
) -> Floats:
    """Kernel density ``(m,)`` of confidences on a grid, with no mass lost at the ends.

    Gaussian kernels with Scott's bandwidth, ``std * n**(-1/5)``, but at least 0.005 and at most a
    quarter of the range; what a kernel puts below ``least`` or above 1 is folded back. Stretched,
    it is the density of :func:`stretch` of the confidence, per unit of that scale: half of Scott's
    bandwidth, since values spread far to the right of a steep edge, but at least 0.05, folded back
    at ``least`` only.

    Args:
        confidence: ``(n,)``.
        grid: ``(m,)`` confidences where the density is wanted.
        least: The smallest confidence possible.
        stretched: On which axis.
        cells: Gather the values into so many cells first, for millions of rows.
    """
    # Rounding may put some below.
    values: Floats = np.maximum(np.asarray(confidence, np.float64), least)
    points: Floats = np.asarray(grid, np.float64)
    low, high = least, None if stretched else 1.0
    if stretched:
        values, points = stretch(values), stretch(points)
        low = float(stretch(np.array(least)))
        width = scott_width(values, least=2 * _LEAST_STRETCHED) / 2
    else:
        width = min(scott_width(values, least=_LEAST_WIDTH), (1 - least) / 4)
    counts = None
    if cells is not None:
        values, counts = gathered(values, cells=cells)
    return folded_density(values, points, width=width, low=low, high=high, counts=counts)


def confidence_density(
    target: object,
    sets: SurrogateBank | Mapping[str, object] | None = None,
    *,
    ax: Axes | None = None,
    label: str = "target",
    chosen: Selection | str | None = None,
    n_classes: int | None = None,
    stretched: bool = False,
    input: str = "logits",
) -> Axes:
    """Density of the confidences of a target, and of every surrogate set.

    Gaussian kernels with Scott's bandwidth, folded back at 1/K and at 1, between which the highest
    of K probabilities lies, so that every density has the area 1. Dotted lines are the means, which
    SAC compares. Of more than eight sets only the chosen one is named.

    Args:
        target: ``(n, k)`` logits or probabilities, or :class:`~shiftcal.Scores`; or ``(n,)``
            confidences.
        sets: A bank, or name to scores or confidences, of the same kinds as the target.
        ax: Where to draw; default: a new figure.
        label: Name of the target.
        chosen: The set to draw bold: what a method chose, or its name.
        n_classes: K, if neither the target nor the sets have it; without it the ends are 0 and 1.
        stretched: Whether equal distances are equal factors of ``1 - confidence``: a network that
            is confident in most rows has all of them in the last hundredth of a plain axis.
            Densities are then per factor of 10.
        input: What rows ``(n, k)`` are: ``"logits"`` or ``"probabilities"``.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If the arrays cannot be used, or have different classes.
        MissingExtra: If matplotlib is not installed.
    """
    check_axes(ax, plot="confidence_density")
    if n_classes is not None:
        check_count(n_classes, name="n_classes", least=2)
    if not isinstance(sets, SurrogateBank | Mapping | None):
        raise InputError(
            "sets must be a SurrogateBank, or names with the logits or confidences of each, such "
            f'as {{"clean": logits}}; got {type(sets).__name__}.'
        )
    k = n_classes
    if isinstance(sets, SurrogateBank):
        k = k or sets.n_classes
        others = [(one.name, one.confidence()) for one in sets]
    else:
        sets = sets or {}
        # Default: of the first that has a column for each class.
        k = k or next(filter(None, map(columns, (target, *sets.values()))), None)
        others = [
            (str(name), confidences(one, input=input, name=f"the set {name!r}", n_classes=k))
            for name, one in sets.items()
        ]
    ours = confidences(target, input=input, name="target", n_classes=k)
    bold = _position(chosen, [name for name, _ in others])
    axes = axes_for(ax, size=(6.4, 4.0))
    low = 0.0 if k is None else 1 / k
    ends = (float(stretch(np.array(low))), DIGITS) if stretched else (low, 1.0)
    x: Floats = np.linspace(ends[0], ends[1], _POINTS)

    def draw(name: str, confidence: Floats, colour: Any, suffix: str = "", **style: Any) -> None:
        grid = 1 - 10**-x if stretched else x
        y = kernel_density(confidence, grid, least=low, stretched=stretched, cells=_CELLS)
        beyond = float((stretch(confidence) > DIGITS).mean()) if stretched else 0.0
        further = f", {100 * beyond:.0f}% beyond" if beyond >= 0.005 else ""
        mean = float(confidence.mean())
        text = f"{legend_text(name)}: mean {mean:.3f}{further}{suffix}"
        place = float(stretch(np.array(mean))) if stretched else mean
        draw_density(axes, x, y, place, colour, **{"label": text, **style})

    draw(str(label), ours, next_look(axes, first=1).colour, fill=True, linewidth=2.0)
    many = len(others) > _MOST_NAMED
    faint: dict[str, Any] = {"label": "_", "alpha": 0.25, "linewidth": 0.6, "with_mean": False}
    for j, ((name, values), colour) in enumerate(zip(others, ramp(len(others), axes), strict=True)):
        if j == bold:
            draw(name, values, colour, ", chosen", linewidth=2.4, zorder=3.5)
        elif many:
            draw(name, values, ink(axes), **faint)
        else:
            draw(name, values, colour, linewidth=1.2)
    if many:
        unnamed = f"{len(others) - (bold is not None)} {'other ' if bold is not None else ''}sets"
        axes.plot([], [], label=unnamed, color=ink(axes), alpha=0.4, linewidth=0.6)
    axes.set_ylim(bottom=0)
    axes.set_xlim(x[0], x[-1])
    if stretched:
        # Curves fill the whole width here, so the legend goes above them.
        entries = len(axes.get_legend_handles_labels()[1])
        axes.set_ylim(top=axes.dataLim.ymax / max(1 - 0.07 * entries, 0.4))
        mark_stretched(axes, [tick for tick in _STRETCHED_TICKS if tick >= low])
    name_axes(axes, x="confidence", y=f"density{' per factor of 10' if stretched else ''}")
    show_legend(axes)
    return axes


def _position(chosen: Selection | str | None, names: list[str]) -> int | None:
    """Which of the sets was chosen; ``None`` for a method that chooses no set."""
    if isinstance(chosen, Selection):
        if chosen.index is None or chosen.n_sets == len(names):
            return chosen.index
        chosen = chosen.set_name
    if chosen is None:
        return None
    if names.count(chosen) != 1:
        raise InputError(
            f"chosen must be what a method chose among the sets, or the name of one; got "
            f"{chosen!r}, and the sets are {', '.join(map(repr, names[:8])) or 'none'}."
        )
    return names.index(chosen)


def draw_density(
    axes: Any,
    x: Any,
    y: Any,
    mean: float,
    colour: Any,
    *,
    fill: bool = False,
    with_mean: bool = True,
    **style: Any,
) -> None:
    """A density, and a dotted line at the mean; both x and the mean are places on the axis."""
    if fill:
        axes.fill_between(x, y, color=colour, alpha=0.2, linewidth=0, zorder=2)
    axes.plot(x, y, **{"color": colour, "zorder": 4 if fill else 3, **style})
    if with_mean:
        height = float(np.interp(mean, x, y))
        axes.vlines(mean, 0, height, color=colour, linestyle=(0, (1, 2)), linewidth=1.2, zorder=3)


def mark_stretched(axes: Any, ticks: list[float], *, percent: bool = False) -> None:
    """Ticks of a stretched axis at these confidences."""
    words = [f"{100 * tick:.10g}" if percent else f"{tick:g}" for tick in ticks]
    axes.set_xticks(stretch(np.array(ticks)), words)
