"""What can be wrong with a choice on a ladder of surrogate sets, as flags.

All tests are about mean raw p_max and ask whether a difference is larger than sampling noise
explains: three standard errors for being outside the range, two for telling sets apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Flag
from shiftcal.surrogates import SetSummary


@dataclass(frozen=True)
class TargetSummary:
    """Raw p_max of a target in numbers."""

    n: int
    mean_confidence: float
    standard_error: float

    @classmethod
    def of(cls, confidence: NDArray[np.float64]) -> TargetSummary:
        """The summary of a sample of p_max."""
        n = len(confidence)
        return cls(n, float(confidence.mean()), float(confidence.std()) / float(n) ** 0.5)


def ladder_flags(
    ladder: Sequence[SetSummary],
    target: TargetSummary,
    distances: Sequence[float],
    *,
    distance: str,
) -> Iterator[Flag]:
    """Every flag that holds, in the order range, ladder, choice."""
    yield from _outside_range(ladder, target)
    yield from _not_monotone(ladder)
    if len(ladder) > 1:
        yield from _indistinguishable(ladder, target, distances, distance=distance)


def _outside_range(ladder: Sequence[SetSummary], target: TargetSummary) -> Iterator[Flag]:
    mean = target.mean_confidence
    lowest = min(ladder, key=lambda s: s.mean_confidence)
    highest = max(ladder, key=lambda s: s.mean_confidence)
    for end, excess, word in (
        (lowest, lowest.mean_confidence - mean, "below"),
        (highest, mean - highest.mean_confidence, "above"),
    ):
        if excess > 3 * float(np.hypot(target.standard_error, end.standard_error)):
            yield Flag(
                "outside-range",
                f"the target's mean confidence {mean:.4f} lies {word} that of every surrogate set "
                f"({end.mean_confidence:.4f}, {end.name}): the shift is outside what was "
                "calibrated, and the confidences are a guess.",
            )


def _not_monotone(ladder: Sequence[SetSummary]) -> Iterator[Flag]:
    for steps in _ladders(ladder):
        for before, after in itertools.pairwise(steps):
            if after.mean_confidence > before.mean_confidence:
                yield Flag(
                    "not-monotone",
                    f"mean confidence rises from {before.mean_confidence:.4f} ({before.name}) to "
                    f"{after.mean_confidence:.4f} ({after.name}): on this ladder confidence does "
                    "not tell how hard the data is. Another corruption may.",
                )
                return


def _ladders(sets: Sequence[SetSummary]) -> list[list[SetSummary]]:
    """The clean set followed by the steps of one corruption, for each; else the given order."""
    if any(s.severity is None for s in sets):
        return [list(sets)]
    clean = [s for s in sets if s.severity == 0]
    names = dict.fromkeys(s.corruption for s in sets if s.severity)
    return [
        clean[:1] + sorted((s for s in sets if s.severity and s.corruption == name), key=_severity)
        for name in names
    ]


def _severity(summary: SetSummary) -> int:
    return summary.severity or 0


def _indistinguishable(
    ladder: Sequence[SetSummary],
    target: TargetSummary,
    distances: Sequence[float],
    *,
    distance: str,
) -> Iterator[Flag]:
    chosen, second = (int(i) for i in np.argsort(distances, kind="stable")[:2])
    margin = distances[second] - distances[chosen]
    a, b = ladder[chosen], ladder[second]
    noise = 2 * (_ks_noise if distance == "ks" else _mean_noise)(target, a, b)
    if margin < noise:
        yield Flag(
            "indistinguishable",
            f"sets {chosen + 1} ({a.name}) and {second + 1} ({b.name}) fit the target equally "
            f"well: their distances {distances[chosen]:.4f} and {distances[second]:.4f} differ by "
            f"less than sampling noise ({noise:.4f}).",
        )


def _mean_noise(target: TargetSummary, a: SetSummary, b: SetSummary) -> float:
    """Standard error of the difference of two distances of means.

    With the target between the sets the difference moves by twice what the target's mean does;
    with both sets on one side the target's mean cancels.
    """
    between = (a.mean_confidence - target.mean_confidence) * (
        b.mean_confidence - target.mean_confidence
    ) < 0
    own = 2 * target.standard_error if between else 0.0
    return float(np.sqrt(own**2 + a.standard_error**2 + b.standard_error**2))


def _ks_noise(target: TargetSummary, a: SetSummary, b: SetSummary) -> float:
    """Standard error of the difference of two KS statistics, each of about 0.26 √(1/n + 1/m)."""
    return 0.26 * float(np.sqrt(2 / target.n + 1 / a.n + 1 / b.n))
