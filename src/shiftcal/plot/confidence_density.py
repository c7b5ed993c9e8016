"""Densities of the raw confidence of a target and of the surrogate sets beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shiftcal._checks import check_count
from shiftcal.methods._selection import Selection
from shiftcal.numerics.kernel_density import DIGITS, stretch
from shiftcal.plot._axes import axes_for, check_axes, legend_text, name_axes, show_legend
from shiftcal.plot._colours import curve_look, ink, ramp
from shiftcal.plot._densities import Curve, classes_of, curve, named_confidences, position
from shiftcal.plot._given import given_confidence
from shiftcal.surrogates import SurrogateBank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    if n_classes is not None:
        check_count(n_classes, name="n_classes", least=2)
    k = classes_of(target, sets) if n_classes is None else n_classes
    others = named_confidences(sets, n_classes=k, input=input)
    ours = given_confidence(target, input=input, name="target", n_classes=k)
    bold = position(chosen, [name for name, _ in others])
    least = 0.0 if k is None else 1 / k
    curves = [curve(name, c, least=least, stretched=stretched) for name, c in others]
    mine = curve(str(label), ours, least=least, stretched=stretched)
    axes = axes_for(ax, size=(6.4, 4.0))
    _draw_target(axes, mine, stretched=stretched)
    _draw_sets(axes, curves, bold, stretched=stretched)
    _mark(axes, least, stretched=stretched)
    show_legend(axes)
    return axes


def _draw_target(axes: Any, drawn: Curve, *, stretched: bool) -> None:
    from matplotlib.colors import to_hex

    used = frozenset(to_hex(line.get_color()) for line in axes.get_lines())
    colour = curve_look(axes, "", _BLUE, used=used).colour
    axes.fill_between(drawn.x, drawn.y, color=colour, alpha=0.2, linewidth=0, zorder=2)
    axes.plot(drawn.x, drawn.y, color=colour, linewidth=2.0, label=_words(drawn), zorder=4)
    _draw_mean(axes, drawn, colour, stretched=stretched)


def _draw_sets(axes: Any, curves: Sequence[Curve], bold: int | None, *, stretched: bool) -> None:
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


def _draw_mean(axes: Any, drawn: Curve, colour: Any, *, stretched: bool) -> None:
    place = float(stretch(np.array(drawn.mean))) if stretched else drawn.mean
    height = float(np.interp(place, drawn.x, drawn.y))
    axes.vlines(place, 0, height, color=colour, linestyle=_DOTS, linewidth=1.2, zorder=3)


def _words(drawn: Curve) -> str:
    further = f", {100 * drawn.beyond:.0f}% beyond" if drawn.beyond >= 0.005 else ""
    return f"{legend_text(drawn.name)}: mean {drawn.mean:.3f}{further}"


def _mark(axes: Any, least: float, *, stretched: bool) -> None:
    axes.set_ylim(bottom=0)
    if not stretched:
        axes.set_xlim(least, 1)
        name_axes(axes, x="confidence", y="density")
        return
    ticks = [tick for tick in _TICKS if tick >= least]
    axes.set_xlim(float(stretch(np.array(least))), DIGITS)
    # Curves fill the whole width there, so that the legend needs a place above them.
    entries = len(axes.get_legend_handles_labels()[1])
    axes.set_ylim(top=axes.dataLim.ymax / max(1 - _ENTRY * entries, 0.4))
    axes.set_xticks(stretch(np.array(ticks)), [f"{tick:g}" for tick in ticks])
    name_axes(axes, x="confidence", y="density per factor of 10")
