"""Densities of the confidences that a plot was given, each with its name and its mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count
from shiftcal.errors import InputError
from shiftcal.methods.method import Selection
from shiftcal.numerics.samples import DIGITS, folded_density, gathered, scott_width, stretch
from shiftcal.plot.style import (
    axes_for,
    check_axes,
    columns,
    curve_look,
    given_confidence,
    ink,
    legend_text,
    name_axes,
    ramp,
    show_legend,
)
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS, _CELLS = 401, 2000
_LEAST_WIDTH, _LEAST_STRETCHED = 0.005, 0.05


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


class _Curve(NamedTuple):
    """A density.

    Attributes:
        name: Of the target or of the set.
        x: ``(m,)`` places on the axis.
        y: ``(m,)`` densities there.
        mean: Of the confidences.
        beyond: Share of the rows that lie further right than the axis goes.
    """

    name: str
    x: Floats
    y: Floats
    mean: float
    beyond: float


def _curve(name: str, confidence: NDArray[np.float64], *, least: float, stretched: bool) -> _Curve:
    """The density of one set between ``least`` and 1, or the end of the stretched axis."""
    ends = (float(stretch(np.array(least))), DIGITS) if stretched else (least, 1.0)
    x = np.linspace(*ends, _POINTS)
    grid = 1 - 10**-x if stretched else x
    y = kernel_density(confidence, grid, least=least, stretched=stretched, cells=_CELLS)
    beyond = float((stretch(confidence) > DIGITS).mean()) if stretched else 0.0
    return _Curve(name, x, y, float(confidence.mean()), beyond)


def _position(chosen: Selection | str | None, names: list[str]) -> int | None:
    """Which of the sets was chosen.

    Raises:
        InputError: If none of them was.
    """
    if isinstance(chosen, Selection):
        if chosen.index is not None and chosen.n_sets == len(names):
            return chosen.index
        if chosen.index is None and chosen.set_name is None:
            return None  # a method that takes no single set
        chosen = chosen.set_name
    if chosen is None:
        return None
    if names.count(chosen) != 1:
        told = ", ".join(map(repr, names[:8])) or "none"
        raise InputError(
            f"chosen must be what a method chose among the sets, or the name of one; got "
            f"{chosen!r}, and the sets are {told}{', ...' if len(names) > 8 else ''}."
        )
    return names.index(chosen)


# More sets than these cannot be told apart by their colours.
_MOST_NAMED = 8
_TICKS = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
_DOTS = (0, (1, 2))
# Which of the colours of curves a target has, if no other one on the axes has it.
_BLUE = 1
# Height of a line of the legend, as a share of the axes.
_ENTRY = 0.07


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
    """How confidence is spread: that of a target, and of every surrogate set beside it.

    Gaussian kernels with Scott's bandwidth, folded back at 1/K and at 1, between which the highest
    of K probabilities lies, so that every density has the area 1. Dotted lines are the means, which
    SAC compares. Of more than eight sets only the chosen one is named.

    Args:
        target: ``(n, k)`` logits or probabilities, or :class:`~shiftcal.Scores`; or ``(n,)``
            confidences.
        sets: A bank, or names and what each is, of the same kinds as the target.
        ax: Where to draw; a new figure by default.
        label: Name of the target.
        chosen: The set to be drawn bold: what a method chose, or its name.
        n_classes: K, if neither the target nor the sets tell it; without it the ends are 0 and 1.
        stretched: Whether equal distances shall be equal factors of ``1 - confidence``: a network
            that is sure of most rows has all of them in the last hundredth of a plain axis.
            Densities are then per factor of 10.
        input: What rows ``(n, k)`` are: ``"logits"`` or ``"probabilities"``.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If the arrays cannot be used, or are of different classes.
        MissingExtra: If matplotlib is not installed.
    """
    check_axes(ax, plot="confidence_density")
    from matplotlib.colors import to_hex

    if n_classes is not None:
        check_count(n_classes, name="n_classes", least=2)
    if not isinstance(sets, SurrogateBank | Mapping | None):
        raise InputError(
            "sets must be a SurrogateBank, or names with the logits or confidences of each, such "
            f'as {{"clean": logits}}; got {type(sets).__name__}.'
        )
    k = n_classes
    if isinstance(sets, SurrogateBank):
        k = sets.n_classes if k is None else k
        others = [(one.name, one.confidence()) for one in sets]
    else:
        sets = sets or {}
        if k is None:  # from the first that has a column for each class
            every = map(columns, (target, *sets.values()))
            k = next((found for found in every if found is not None), None)
        others = [
            (str(name), given_confidence(one, input=input, name=f"the set {name!r}", n_classes=k))
            for name, one in sets.items()
        ]
    ours = given_confidence(target, input=input, name="target", n_classes=k)
    bold = _position(chosen, [name for name, _ in others])
    least = 0.0 if k is None else 1 / k
    curves = [_curve(name, c, least=least, stretched=stretched) for name, c in others]
    drawn = _curve(str(label), ours, least=least, stretched=stretched)
    axes = axes_for(ax, size=(6.4, 4.0))
    used = frozenset(to_hex(line.get_color()) for line in axes.get_lines())
    colour = curve_look(axes, "", _BLUE, used=used).colour
    axes.fill_between(drawn.x, drawn.y, color=colour, alpha=0.2, linewidth=0, zorder=2)
    axes.plot(drawn.x, drawn.y, color=colour, linewidth=2.0, label=_words(drawn), zorder=4)
    _draw_mean(axes, drawn, colour, stretched=stretched)
    _draw_sets(axes, curves, bold, stretched=stretched)
    axes.set_ylim(bottom=0)
    if stretched:
        ticks = [tick for tick in _TICKS if tick >= least]
        axes.set_xlim(float(stretch(np.array(least))), DIGITS)
        # Curves fill the whole width there, so the legend goes above them.
        entries = len(axes.get_legend_handles_labels()[1])
        axes.set_ylim(top=axes.dataLim.ymax / max(1 - _ENTRY * entries, 0.4))
        axes.set_xticks(stretch(np.array(ticks)), [f"{tick:g}" for tick in ticks])
    else:
        axes.set_xlim(least, 1)
    name_axes(axes, x="confidence", y=f"density{' per factor of 10' if stretched else ''}")
    show_legend(axes)
    return axes


def _draw_sets(axes: Any, curves: Sequence[_Curve], bold: int | None, *, stretched: bool) -> None:
    """All sets; the first is drawn first, and the chosen one above the others."""
    many = len(curves) > _MOST_NAMED
    for j, (drawn, colour) in enumerate(zip(curves, ramp(len(curves), axes), strict=True)):
        own = j == bold
        words = f"{_words(drawn)}{', chosen' if own else ''}"
        axes.plot(
            drawn.x,
            drawn.y,
            color=colour if not many or own else ink(axes),
            alpha=1.0 if not many or own else 0.25,
            linewidth=2.4 if own else 0.6 if many else 1.2,
            label="_" if many and not own else words,
            zorder=3.5 if own else 3,
        )
        if own or not many:
            _draw_mean(axes, drawn, colour, stretched=stretched)
    if many:
        unnamed = len(curves) - (bold is not None)
        look = {"color": ink(axes), "alpha": 0.4, "linewidth": 0.6}
        axes.plot([], [], label=f"{unnamed} {'other ' if bold is not None else ''}sets", **look)


def _draw_mean(axes: Any, drawn: _Curve, colour: Any, *, stretched: bool) -> None:
    place = float(stretch(np.array(drawn.mean))) if stretched else drawn.mean
    height = float(np.interp(place, drawn.x, drawn.y))
    axes.vlines(place, 0, height, color=colour, linestyle=_DOTS, linewidth=1.2, zorder=3)


def _words(drawn: _Curve) -> str:
    further = f", {100 * drawn.beyond:.0f}% beyond" if drawn.beyond >= 0.005 else ""
    return f"{legend_text(drawn.name)}: mean {drawn.mean:.3f}{further}"
