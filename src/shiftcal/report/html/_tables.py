"""The tables of a report: classes, sets of the bank, and densities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Labels
from shiftcal.methods._selection import Selection
from shiftcal.report.html._density import DIGITS, density
from shiftcal.report.html._judge import Outputs
from shiftcal.report.html._shares import share
from shiftcal.report.html._words import shown
from shiftcal.report.html.evidence import Choice, ClassFacts, Densities, SetFacts
from shiftcal.surrogates import SetSummary, SurrogateBank

# Classes beyond these, the least predicted ones, are left out of the facts too.
MOST_CLASSES = 2000
# Curves that an eye can follow, and points that make them smooth.
_CURVES, _POINTS = 7, 101
# A median above it leaves too little of the plain axis to see anything.
_NEAR_ONE = 0.9


def classes_of(
    raw: Outputs,
    made: Outputs,
    names: Sequence[str] | None,
    *,
    k: int,
    labels: Labels | None,
    level: float,
) -> tuple[ClassFacts, ...]:
    """A line for every class by what the model predicts, the most predicted first.

    Args:
        raw: The model's own outputs.
        made: The same calibrated; rows stand by what ``raw`` predicts.
        names: Of the classes, if known.
        k: Number of classes.
        labels: If known.
        level: Of the intervals.
    """
    counts = np.bincount(raw.predicted, minlength=k)
    before = np.bincount(raw.predicted, weights=raw.confidence, minlength=k)
    after = np.bincount(raw.predicted, weights=made.confidence, minlength=k)
    right = None
    if labels is not None:
        right = np.bincount(raw.predicted, weights=raw.correct(labels), minlength=k)
    order = np.argsort(-counts, kind="stable")[:MOST_CLASSES]
    total = len(raw.predicted)
    return tuple(
        ClassFacts(
            int(j),
            shown(str(j) if names is None else names[j]),
            int(counts[j]),
            float(counts[j] / total),
            float(before[j] / counts[j]) if counts[j] else None,
            float(after[j] / counts[j]) if counts[j] else None,
            share(float(right[j]), float(counts[j]), level=level)
            if right is not None and counts[j]
            else None,
        )
        for j in order
    )


def sets_of(
    ladder: Sequence[SetSummary],
    temperatures: Sequence[float],
    selection: Selection,
    *,
    confidence: float,
) -> tuple[SetFacts, ...]:
    """Every set of the bank beside the target.

    Args:
        ladder: The sets in numbers.
        temperatures: That fits each best.
        selection: What the method chose.
        confidence: The target's mean raw p_max.
    """
    away = [abs(confidence - s.mean_confidence) for s in ladder]
    distances = selection.distances or away
    nearest = int(np.argmin(away))
    return tuple(
        SetFacts(
            shown(s.name),
            s.n,
            s.mean_confidence,
            s.accuracy,
            float(temperatures[j]),
            float(distances[j]),
            chosen=selection.index == j,
            nearest=nearest == j,
        )
        for j, s in enumerate(ladder)
    )


def choice_of(selection: Selection, sets: Sequence[SetFacts]) -> Choice:
    """The choice and its margin."""
    runner_up = None
    if selection.index is not None and len(sets) > 1:
        others = [j for j in range(len(sets)) if j != selection.index]
        runner_up = sets[min(others, key=lambda j: sets[j].distance)].name
    return Choice(
        selection.method,
        shown(str(selection), 400),
        selection.distance or "mean",
        selection.margin,
        runner_up,
        dict(selection.details),
    )


def densities_of(
    target: NDArray[np.float64], bank: SurrogateBank, sets: Sequence[SetFacts], shown_set: int
) -> Densities:
    """Densities of the target and of the sets nearest to it.

    Args:
        target: Raw p_max of the target.
        bank: The bank.
        sets: Its sets beside the target.
        shown_set: The set that is always among them.
    """
    stretched = bool(np.median(target) > _NEAR_ONE)
    grid = np.linspace(0.0, 1.0, _POINTS)
    if stretched:
        grid = 1 - 10 ** -(DIGITS * grid)
    middle = float(target.mean())
    order = sorted(
        range(len(sets)),
        key=lambda j: (j != shown_set, j != 0, abs(sets[j].mean_confidence - middle)),
    )
    curves = [
        (j, _rounded(density(bank[j].confidence(), grid, stretched=stretched)))
        for j in order[:_CURVES]
    ]
    here = _rounded(density(target, grid, stretched=stretched))
    return Densities(stretched, tuple(round(float(x), 8) for x in grid), here, tuple(curves))


def _rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in values)
