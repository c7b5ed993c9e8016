"""The distance of a target to every set, the one that was chosen, and the margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shiftcal._drawing.palette import METHODS
from shiftcal.errors import InputError
from shiftcal.methods._selection import Selection
from shiftcal.plot._axes import name_axes
from shiftcal.plot._colours import ink, visible

_MOST = 30
_WORDS = {
    "mean": "difference of mean confidence",
    "ks": "Kolmogorov-Smirnov distance of confidence",
    "wasserstein": "Wasserstein distance of confidence",
    "atc": "difference of accuracy, as estimated by ATC",
    "atc-entropy": "difference of accuracy, as estimated by ATC with entropy",
}


@dataclass(frozen=True)
class Distances:
    """What is drawn.

    Attributes:
        names: Of the sets drawn, in the order of the bank.
        values: Their distances.
        chosen: Which of them was chosen.
        runner_up: Which was the next; ``None`` if there is one set only.
        margin: Between the two.
        kind: Name of the distance.
        total: Sets in all.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    chosen: int
    runner_up: int | None
    margin: float | None
    kind: str
    total: int

    @classmethod
    def of(cls, made: Selection, names: list[str]) -> Distances:
        """The nearest sets of a selection.

        Raises:
            InputError: If it is of a method that takes no single set.
        """
        if not made.distances or made.index is None:
            raise InputError(
                f"{made.method} chose between no sets, so that there are no distances to draw. "
                "SAC has them; Rehearsal has temperatures."
            )
        values = made.distances
        others = sorted((j for j in range(len(values)) if j != made.index), key=values.__getitem__)
        drawn = sorted([made.index, *others[: _MOST - 1]])
        return cls(
            tuple(names[j] for j in drawn),
            tuple(float(values[j]) for j in drawn),
            drawn.index(made.index),
            drawn.index(others[0]) if others else None,
            made.margin,
            made.distance or "",
            len(values),
        )


def height(distances: Distances) -> float:
    """Inches that the rows of a new figure need."""
    return 1.3 + 0.24 * max(len(distances.names), 4)


def draw_distances(axes: Any, told: Distances) -> Any:
    """Draw, and return the axes."""
    rows = range(len(told.names))
    accent = visible(METHODS["sac"].colour, axes)
    colours = [accent if j == told.chosen else ink(axes) for j in rows]
    axes.hlines(rows, 0, told.values, colors=colours, alpha=0.5, linewidth=1.2)
    for j in rows:
        own = j == told.chosen
        look = {"color": colours[j], "markersize": 8 if own else 5, "zorder": 3}
        axes.plot([told.values[j]], [j], "o", **look)
    axes.set_yticks(rows, told.names)
    for j, text in enumerate(axes.get_yticklabels()):
        text.set_parse_math(False)
        text.set_fontweight("bold" if j == told.chosen else "normal")
    axes.set_ylim(len(rows) - 0.4, -0.6)  # the first set on top
    axes.set_xlim(0, 1.12 * max(*told.values, told.margin or 0.0) or 1.0)
    _draw_margin(axes, told, accent)
    few = told.total > len(told.names)
    some = f"; {len(told.names)} nearest of {told.total} sets" if few else ""
    name_axes(axes, x=f"{_WORDS.get(told.kind, 'distance')}{some}", y="")
    return axes


def _draw_margin(axes: Any, told: Distances, accent: Any) -> None:
    """The stretch between the chosen set and the runner-up, with its length in words."""
    if told.runner_up is None or told.margin is None:
        return
    near, far = told.values[told.chosen], told.values[told.runner_up]
    axes.axvspan(near, far, color=accent, alpha=0.12, linewidth=0, zorder=0)
    if not any(axes.get_title(loc=side) for side in ("left", "center", "right")):
        words = f"{told.names[told.chosen]}, by a margin of {told.margin:.2g}"
        axes.set_title(words, loc="left", parse_math=False)
