"""Densities of the confidences that a plot was given, each with its name and its mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats
from shiftcal.errors import InputError
from shiftcal.methods._selection import Selection
from shiftcal.numerics.kernel_density import (
    DIGITS,
    folded_density,
    gathered,
    scott_width,
    stretch,
)
from shiftcal.plot._given import columns, given_confidence
from shiftcal.surrogates import SurrogateBank

Sets = SurrogateBank | Mapping[str, object] | None
Named = list[tuple[str, NDArray[np.float64]]]

_POINTS, _CELLS = 401, 2000
_LEAST_WIDTH, _LEAST_STRETCHED = 0.005, 0.05


class Curve(NamedTuple):
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


def curve(name: str, confidence: NDArray[np.float64], *, least: float, stretched: bool) -> Curve:
    """The density of one set, folded back at ``least`` and at 1.

    Kernels are no wider than a quarter of the range, so that folding back once is enough.

    Args:
        name: Of the set.
        confidence: ``(n,)``.
        least: The lowest that a confidence can be.
        stretched: Whether it is the density of :func:`stretch` of the confidence, per unit of
            that; kernels have half of the width there, since values spread far to the right.
    """
    mean = float(confidence.mean())
    if not stretched:
        held = np.maximum(confidence, least)  # what rounding put below it
        width = min(scott_width(held, least=_LEAST_WIDTH), (1 - least) / 4)
        x = np.linspace(least, 1.0, _POINTS)
        values, counts = gathered(held, cells=_CELLS)
        y = folded_density(values, x, width=width, low=least, high=1.0, counts=counts)
        return Curve(name, x, y, mean, 0.0)
    low = float(stretch(np.array(least)))
    digits = np.maximum(stretch(confidence), low)
    width = scott_width(digits, least=2 * _LEAST_STRETCHED) / 2
    x = np.linspace(low, DIGITS, _POINTS)
    values, counts = gathered(digits, cells=_CELLS)
    y = folded_density(values, x, width=width, low=low, counts=counts)
    return Curve(name, x, y, mean, float((digits > DIGITS).mean()))


def classes_of(target: object, sets: object) -> int | None:
    """The number of classes, from the first of them that has a column for each."""
    if isinstance(sets, SurrogateBank):
        return sets.n_classes
    others = sets.values() if isinstance(sets, Mapping) else ()
    return next((k for k in map(columns, (target, *others)) if k is not None), None)


def named_confidences(sets: object, *, n_classes: int | None, input: str) -> Named:
    """Names and confidences of all sets.

    Raises:
        InputError: If they are neither a bank nor named, or are of different classes.
    """
    if sets is None:
        return []
    if isinstance(sets, SurrogateBank):
        return [(one.name, one.confidence()) for one in sets]
    if not isinstance(sets, Mapping):
        raise InputError(
            "sets must be a SurrogateBank, or names with the logits or confidences of each, such "
            f'as {{"clean": logits}}; got {type(sets).__name__}.'
        )
    return [
        (
            str(name),
            given_confidence(each, input=input, name=f"the set {name!r}", n_classes=n_classes),
        )
        for name, each in sets.items()
    ]


def position(chosen: Selection | str | None, names: list[str]) -> int | None:
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
