"""What a method chose for a target: how far it is from every set, or which temperature it got."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from shiftcal._checks import check_choice
from shiftcal.errors import InputError, NotFittedError
from shiftcal.methods import Method
from shiftcal.methods._selection import Selection
from shiftcal.plot._axes import axes_for, check_axes
from shiftcal.plot._distances import Distances, draw_distances, height
from shiftcal.plot._temperatures import Temperatures, draw_temperatures
from shiftcal.surrogates import SurrogateBank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Shown = Literal["distances", "temperatures"]


def selection(
    chosen: Method | Selection,
    sets: SurrogateBank | Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    show: Shown | None = None,
) -> Axes:
    """What was chosen for a target, and how near the next choice was.

    ``"distances"``, of a method that takes one set: the distance of the target to every set, the
    chosen one marked, and the margin to the runner-up. Of more than thirty sets the thirty nearest
    are drawn.

    ``"temperatures"``: the temperature of every set over its mean raw confidence, a line for every
    corruption, and the target among them with the temperature it got and its interval.

    Args:
        chosen: A method that was adapted, or what its ``adapt`` returned.
        sets: The bank it was fitted on, or the names of its sets, if ``chosen`` is a selection; a
            method knows its own.
        ax: Where to draw; a new figure by default.
        show: Which of the two; by default distances, where the method has them.

    Returns:
        ``ax``, or the axes of the new figure.

    Raises:
        InputError: If the method chose between no sets, or the sets are not those it chose from.
        NotFittedError: If the method was not adapted.
        MissingExtra: If matplotlib is not installed.
    """
    check_axes(ax, plot="selection")
    if show is not None:
        check_choice(show, ("distances", "temperatures"), name="show")
    made = _selection_of(chosen)
    if show == "temperatures" or (show is None and not made.distances):
        told = Temperatures.of(chosen, made)
        return draw_temperatures(axes_for(ax, size=(6.4, 4.4)), told)
    distances = Distances.of(made, _names(chosen, made, sets))
    return draw_distances(axes_for(ax, size=(6.4, height(distances))), distances)


def _selection_of(chosen: object) -> Selection:
    if isinstance(chosen, Selection):
        return chosen
    if not isinstance(chosen, Method):
        raise InputError(
            "chosen must be a method that was adapted, or what its adapt returned; got "
            f"{type(chosen).__name__}."
        )
    made = getattr(chosen, "selection_", None)
    if made is None:
        raise NotFittedError(
            f"this {chosen.name()} has chosen nothing yet; call adapt with unlabelled logits first."
        )
    return made


def _names(chosen: object, made: Selection, sets: object) -> list[str]:
    """Names of the sets in the order of the bank."""
    if isinstance(sets, SurrogateBank):
        names = [one.name for one in sets]
    elif sets is not None:
        if isinstance(sets, str) or not isinstance(sets, Sequence):
            raise InputError(
                f"sets must be a SurrogateBank or names of its sets; got {type(sets).__name__}."
            )
        names = [str(name) for name in sets]
    elif isinstance(chosen, Method) and hasattr(chosen, "ladder_"):
        names = [one.name for one in chosen.ladder_]
    else:
        names = [
            made.set_name if j == made.index and made.set_name else f"set {j + 1}"
            for j in range(len(made.distances))
        ]
    if made.distances and len(names) != len(made.distances):
        raise InputError(
            f"sets must be the {len(made.distances)} that {made.method} chose from; got "
            f"{len(names)}."
        )
    return names
