"""Temperatures of all sets over their mean confidence, and the target among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shiftcal._drawing.palette import METHODS
from shiftcal._types import Interval
from shiftcal.errors import InputError
from shiftcal.methods._selection import Selection
from shiftcal.methods.base import temperature_of
from shiftcal.plot._axes import legend_text, name_axes, show_legend
from shiftcal.plot._colours import categories, ink, visible
from shiftcal.surrogates import SetSummary

# More corruptions than these are not named one by one.
_MOST_NAMED = 6
_NARROW = 4.0


@dataclass(frozen=True)
class Temperatures:
    """What is drawn.

    Attributes:
        method: Name of the method.
        ladder: Every set in numbers, the clean one first.
        of_sets: Their temperatures.
        mean_confidence: Of the target.
        temperature: That the target got.
        interval: Where the right one may lie.
        chosen: Position of the set that was taken, if one was.
    """

    method: str
    ladder: tuple[SetSummary, ...]
    of_sets: tuple[float, ...]
    mean_confidence: float
    temperature: float
    interval: Interval | None
    chosen: int | None

    @classmethod
    def of(cls, method: object, made: Selection) -> Temperatures:
        """Those of a method that was adapted.

        Raises:
            InputError: If it has no temperature for every set, or is a selection alone.
        """
        ladder = getattr(method, "ladder_", None)
        of_sets = getattr(method, "temperatures_", None)
        if of_sets is None:
            of_sets = [temperature_of(one) for one in getattr(method, "maps_", ())]
        if not ladder or len(of_sets) != len(ladder) or None in of_sets:
            hint = (
                " A selection does not hold those of the sets: pass the method itself."
                if isinstance(method, Selection)
                else " Rehearsal has, and SAC with temperatures as maps."
            )
            raise InputError(f"{made.method} must have a temperature for every set.{hint}")
        assert made.temperature is not None
        assert made.mean_confidence is not None
        return cls(
            made.method,
            tuple(ladder),
            tuple(of_sets),
            made.mean_confidence,
            made.temperature,
            made.temperature_interval,
            made.index,
        )

    def ladders(self) -> dict[str, list[int]]:
        """Corruption to the positions of its sets; each begins at the clean one."""
        found: dict[str, list[int]] = {}
        for j, one in enumerate(self.ladder[1:], start=1):
            found.setdefault(one.corruption or "surrogate sets", [0]).append(j)
        return found or {"clean set": [0]}


def draw_temperatures(axes: Any, told: Temperatures) -> Any:
    """Draw, and return the axes."""
    ladders = told.ladders()
    named = len(ladders) <= _MOST_NAMED
    colours = categories(list(ladders), axes) if named else [ink(axes)] * len(ladders)
    for (name, steps), colour in zip(ladders.items(), colours, strict=True):
        x = [told.ladder[j].mean_confidence for j in steps]
        y = [told.of_sets[j] for j in steps]
        label = legend_text(name) if named else "_"
        look = {"alpha": 1.0 if named else 0.4, "linewidth": 1.0, "markersize": 4}
        axes.plot(x, y, "o-", color=colour, label=label, **look)
    if not named:
        look = {"color": ink(axes), "alpha": 0.6, "linewidth": 1.0, "markersize": 4}
        axes.plot([], [], "o-", label=f"{len(ladders)} corruptions", **look)
    _draw_target(axes, told)
    axes.set_yscale("log")
    every = [*told.of_sets, told.temperature]
    _mark_temperatures(axes, max(every) / min(every))
    axes.margins(x=0.08, y=0.12)
    name_axes(axes, x="mean raw confidence", y="temperature")
    show_legend(axes)
    return axes


def _draw_target(axes: Any, told: Temperatures) -> None:
    colour = visible(METHODS["sac"].colour, axes)
    words = f"target: T = {told.temperature:.3g}"
    bars = None
    if (around := told.interval) is not None:
        words += f" ({around.low:.3g} to {around.high:.3g})"
        bars = ([told.temperature - around.low], [around.high - told.temperature])
    if told.chosen is not None:
        words += f", that of {told.ladder[told.chosen].name}"
    axes.axvline(told.mean_confidence, color=colour, linestyle=":", linewidth=1.0, zorder=1)
    axes.errorbar(
        [told.mean_confidence],
        [told.temperature],
        yerr=bars,
        color=colour,
        marker="D",
        markersize=7,
        linestyle="none",
        capsize=4,
        label=words,
        zorder=4,
    )


def _mark_temperatures(axes: Any, ratio: float) -> None:
    """Plain numbers at the ticks, at equal steps where the range is too narrow for round factors.

    Args:
        axes: To be marked.
        ratio: Of the largest temperature to the least.
    """
    from matplotlib.ticker import AutoLocator, LogLocator, NullFormatter, StrMethodFormatter

    steps = AutoLocator() if ratio < _NARROW else LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
    axes.yaxis.set_major_locator(steps)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
