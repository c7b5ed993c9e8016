"""What a method chose for a target: its distance to every set, or the temperature it gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from shiftcal.checks import check_choice
from shiftcal.errors import InputError, NotFittedError
from shiftcal.methods import Method
from shiftcal.methods.method import Selection, temperature_of
from shiftcal.plot.style import (
    METHODS,
    axes_for,
    check_axes,
    ink,
    legend_text,
    name_axes,
    next_look,
    show_legend,
    visible,
)
from shiftcal.surrogates import SurrogateBank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Sets drawn by their distance, and corruptions named one by one.
_MOST_SETS, _MOST_NAMED = 30, 5
_WORDS = {
    "mean": "difference of mean confidence",
    "ks": "Kolmogorov-Smirnov distance of confidence",
    "wasserstein": "Wasserstein distance of confidence",
    "atc": "difference of accuracy, as estimated by ATC",
    "atc-entropy": "difference of accuracy, as estimated by ATC with entropy",
}


def selection(
    chosen: Method | Selection,
    sets: SurrogateBank | Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    show: Literal["distances", "temperatures"] | None = None,
) -> Axes:
    """What was chosen for a target, and how near the next choice was.

    ``"distances"``, of a method that chooses one set: the distance of the target to every set, the
    chosen one marked, and the margin to the runner-up. Of more than thirty sets the thirty nearest
    are drawn.

    ``"temperatures"``: the temperature of every set over its mean raw confidence, a line for every
    corruption, and the target among them with its temperature and interval.

    Args:
        chosen: An adapted method, or what its ``adapt`` returned.
        sets: The bank it was fitted on, or the names of its sets, if ``chosen`` is a selection; a
            method knows its own.
        ax: Where to draw; default: a new figure.
        show: Which of the two; default: distances, where the method has them.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If the method chose between no sets, or the sets are not those it chose from.
        NotFittedError: If the method is not adapted.
        MissingExtra: If matplotlib is not installed.
    """
    check_axes(ax, plot="selection")
    if show is not None:
        check_choice(show, ("distances", "temperatures"), name="show")
    if not isinstance(chosen, Method | Selection):
        raise InputError(
            "chosen must be an adapted method, or what its adapt returned; got "
            f"{type(chosen).__name__}."
        )
    choice = chosen if isinstance(chosen, Selection) else getattr(chosen, "selection_", None)
    if choice is None:
        name = getattr(chosen, "name", "method")
        raise NotFittedError(
            f"this {name} has chosen nothing yet; call adapt with unlabelled logits first."
        )
    if show == "temperatures" or (show is None and not choice.distances):
        return _draw_temperatures(ax, chosen, choice)
    if not choice.distances or choice.index is None:
        raise InputError(
            f"{choice.method} chose between no sets, so there are no distances to draw. "
            "SAC has them; Rehearsal has temperatures."
        )
    return _draw_distances(ax, choice, _names(chosen, choice, sets))


def _names(chosen: object, choice: Selection, sets: Any) -> list[str]:
    """Names of the sets in the order of the bank."""
    if isinstance(sets, SurrogateBank):
        names = [one.name for one in sets]
    elif sets is not None:
        names = [str(name) for name in sets]
    elif hasattr(chosen, "ladder_"):
        names = [one.name for one in chosen.ladder_]
    else:
        names = [f"set {j + 1}" for j in range(len(choice.distances))]
        if choice.set_name and choice.index is not None:
            names[choice.index] = choice.set_name
    if isinstance(sets, str) or len(names) != len(choice.distances):
        raise InputError(
            f"sets must be the bank, or the names, of the {len(choice.distances)} sets that "
            f"{choice.method} chose from; got {sets if isinstance(sets, str) else len(names)!r}."
        )
    return names


def _draw_distances(ax: Any, choice: Selection, names: list[str]) -> Any:
    distances, index = choice.distances, choice.index
    assert index is not None
    others = sorted((j for j in range(len(distances)) if j != index), key=distances.__getitem__)
    drawn = sorted([index, *others[: _MOST_SETS - 1]])
    axes = axes_for(ax, size=(6.4, 1.3 + 0.24 * max(len(drawn), 4)))
    accent = visible(METHODS["sac"].colour, axes)
    for row, j in enumerate(drawn):
        colour, size = (accent, 8) if j == index else (ink(axes), 5)
        axes.hlines(row, 0, distances[j], color=colour, alpha=0.5, linewidth=1.2)
        axes.plot([distances[j]], [row], "o", color=colour, markersize=size, zorder=3)
    axes.set_yticks(range(len(drawn)), [names[j] for j in drawn], parse_math=False)
    axes.get_yticklabels()[drawn.index(index)].set_fontweight("bold")
    axes.set_ylim(len(drawn) - 0.4, -0.6)  # the first set on top
    axes.set_xlim(0, 1.12 * max(distances[j] for j in drawn) or 1.0)
    if others and choice.margin is not None:
        ends = float(distances[index]), float(distances[others[0]])
        axes.axvspan(*ends, color=accent, alpha=0.12, linewidth=0, zorder=0)
        if not any(axes.get_title(loc=side) for side in ("left", "center", "right")):
            words = f"{names[index]}, by a margin of {choice.margin:.2g}"
            axes.set_title(words, loc="left", parse_math=False)
    few = len(distances) > len(drawn)
    some = f"; {len(drawn)} nearest of {len(distances)} sets" if few else ""
    name_axes(axes, x=f"{_WORDS.get(choice.distance or '', 'distance')}{some}", y="")
    return axes


def _draw_temperatures(ax: Any, method: object, choice: Selection) -> Any:
    ladder = getattr(method, "ladder_", None)
    temperatures: Any = getattr(method, "temperatures_", None)
    if temperatures is None:
        temperatures = [temperature_of(one) for one in getattr(method, "maps_", ())]
    if not ladder or len(temperatures) != len(ladder) or None in temperatures:
        raise InputError(
            f"{choice.method} must have a temperature for every set: pass Rehearsal, or SAC with "
            "temperatures as maps, themselves and not a selection."
        )
    assert choice.temperature is not None
    assert choice.mean_confidence is not None
    axes = axes_for(ax, size=(6.4, 4.4))
    # Every corruption begins at the clean set.
    corruptions: dict[str, list[int]] = {}
    for j, one in enumerate(ladder[1:], start=1):
        corruptions.setdefault(one.corruption or "surrogate sets", [0]).append(j)
    corruptions = corruptions or {"clean set": [0]}
    named = len(corruptions) <= _MOST_NAMED
    style: dict[str, Any] = {"linewidth": 1.0, "markersize": 4}
    for name, steps in corruptions.items():
        x = [ladder[j].mean_confidence for j in steps]
        y = [temperatures[j] for j in steps]
        if named:
            colour = next_look(axes, first=1).colour
            axes.plot(x, y, "o-", color=colour, label=legend_text(name), **style)
        else:
            axes.plot(x, y, "o-", color=ink(axes), alpha=0.4, **style)
    if not named:
        label = f"{len(corruptions)} corruptions"
        axes.plot([], [], "o-", color=ink(axes), label=label, alpha=0.6, **style)
    around = choice.temperature_interval
    ends = None if around is None else (around.low, around.high)
    words = f"target: T = {choice.temperature:.3g}"
    words += "" if ends is None else f" ({ends[0]:.3g} to {ends[1]:.3g})"
    if choice.index is not None:
        words += f", that of {ladder[choice.index].name}"
    colour = visible(METHODS["sac"].colour, axes)
    draw_target(axes, choice.mean_confidence, choice.temperature, ends, colour, label=words)
    mark_temperatures(axes, [*temperatures, choice.temperature])
    name_axes(axes, x="mean raw confidence", y="temperature")
    show_legend(axes)
    return axes


def draw_target(
    axes: Any,
    confidence: float,
    temperature: float | None,
    ends: tuple[float, float] | None,
    colour: str,
    *,
    label: str = "",
) -> None:
    """A vertical line at the mean confidence, and on it the temperature with its interval."""
    axes.axvline(confidence, color=colour, linestyle=":", linewidth=1.0, zorder=1)
    if temperature is not None:
        bars = None if ends is None else ([temperature - ends[0]], [ends[1] - temperature])
        style = {"marker": "D", "markersize": 7, "linestyle": "none", "capsize": 4, "zorder": 4}
        axes.errorbar([confidence], [temperature], bars, color=colour, label=label, **style)


def mark_temperatures(axes: Any, temperatures: Sequence[float]) -> None:
    """A logarithmic axis with round numbers; equal steps if the range is too narrow for factors."""
    from matplotlib.ticker import AutoLocator, LogLocator, NullLocator, StrMethodFormatter

    axes.set_yscale("log")
    narrow = max(temperatures) / min(temperatures) < 4.0
    locator = AutoLocator() if narrow else LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
    axes.yaxis.set_major_locator(locator)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.08, y=0.12)
