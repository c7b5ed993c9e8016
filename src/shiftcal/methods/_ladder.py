"""What can be wrong with a choice on a ladder of surrogate sets, as flags.

All ask whether a difference is larger than sampling noise explains: three standard errors for
being outside the range, two for telling sets apart. They are about mean raw p_max, but for telling
sets apart by what chose between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Flag
from shiftcal.surrogates import SetSummary

# The mean of fewer rows depends on the draw more than on the shift, and p_max is too skewed for
# standard errors to mean what they say.
FEW_ROWS = 100


@dataclass(frozen=True)
class TargetSummary:
    """Raw p_max of a target in numbers, and its accuracy where that was estimated."""

    n: int
    mean_confidence: float
    sd_confidence: float
    estimated_accuracy: float | None = None

    @classmethod
    def of(cls, confidence: NDArray[np.float64]) -> TargetSummary:
        """The summary of a sample of p_max."""
        return cls(len(confidence), float(confidence.mean()), float(confidence.std()))

    def standard_error(self, *sets: SetSummary) -> float:
        """Standard error of the mean, if the target varies no less than the sets it may be from.

        A few rows that happen to be alike say nothing about how much the target varies.
        """
        spread = max(self.sd_confidence, *(s.sd_confidence for s in sets))
        return spread / float(self.n) ** 0.5


def ladder_flags(
    ladder: Sequence[SetSummary],
    target: TargetSummary,
    distances: Sequence[float],
    *,
    distance: str,
) -> Iterator[Flag]:
    """Every flag that holds, in the order rows, range, ladder, choice."""
    yield from few_rows(target.n)
    yield from _outside_range(ladder, target)
    yield from not_monotone(ladder)
    if len(ladder) > 1:
        yield from _indistinguishable(ladder, target, distances, distance=distance)


def few_rows(n: int) -> Iterator[Flag]:
    """A flag if so few target rows were looked at that chance has a part in the choice."""
    if n < FEW_ROWS:
        yield Flag(
            "few-rows",
            f"{n} target rows were looked at: their mean confidence is uncertain, and so is the "
            f"choice. Take {FEW_ROWS} or more.",
        )


def _outside_range(ladder: Sequence[SetSummary], target: TargetSummary) -> Iterator[Flag]:
    mean = target.mean_confidence
    lowest = min(ladder, key=lambda s: s.mean_confidence)
    highest = max(ladder, key=lambda s: s.mean_confidence)
    for end, excess, word in (
        (lowest, lowest.mean_confidence - mean, "below"),
        (highest, mean - highest.mean_confidence, "above"),
    ):
        noise = float(np.hypot(target.standard_error(end), end.standard_error))
        if excess > 3 * noise:
            yield Flag(
                "outside-range",
                f"the target's mean confidence {mean:.4f} lies {word} that of every surrogate set "
                f"({end.mean_confidence:.4f}, {end.name}): the shift is outside what was "
                "calibrated, and the confidences are a guess.",
            )


def not_monotone(ladder: Sequence[SetSummary]) -> Iterator[Flag]:
    """A flag if mean confidence rises on the way down a ladder, at the first step that does."""
    for steps in _ladders(ladder):
        for before, after in itertools.pairwise(steps):
            rise = after.mean_confidence - before.mean_confidence
            if rise > 2 * float(np.hypot(before.standard_error, after.standard_error)):
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
    """A flag for the nearest other set that the target could as well have chosen."""
    chosen, *others = nearest_first(ladder, distances)
    a = ladder[chosen]
    for other in others:
        b = ladder[other]
        margin = distances[other] - distances[chosen]
        if _in_doubt(target, a, b, distance=distance, margin=margin):
            yield Flag(
                "indistinguishable",
                f"sets {chosen + 1} ({a.name}) and {other + 1} ({b.name}) cannot be told apart by "
                f"these {target.n} rows: distances {distances[chosen]:.4f} and "
                f"{distances[other]:.4f} differ by no more than sampling noise explains.",
            )
            return


def _in_doubt(
    target: TargetSummary, a: SetSummary, b: SetSummary, *, distance: str, margin: float
) -> bool:
    if distance == "ks":
        return _ks_doubt(target, a, b, margin)
    if distance == "wasserstein":
        return _wasserstein_doubt(target, a, b, margin)
    if target.estimated_accuracy is not None:
        return _accuracy_doubt(target.n, target.estimated_accuracy, a, b)
    return _mean_doubt(target, a, b)


def nearest_first(ladder: Sequence[SetSummary], distances: Sequence[float]) -> list[int]:
    """Positions of the sets by distance; of equal ones the least severe, then the first."""

    def key(j: int) -> tuple[float, int, int]:
        severity = ladder[j].severity
        return distances[j], j if severity is None else severity, j

    return sorted(range(len(ladder)), key=key)


def _mean_doubt(target: TargetSummary, a: SetSummary, b: SetSummary) -> bool:
    """Whether two standard errors could flip the choice, or the two sets are alike.

    The choice flips where the target's mean crosses the middle between the two sets' means.
    """
    apart = abs(a.mean_confidence - b.mean_confidence)
    if apart < 2 * float(np.hypot(a.standard_error, b.standard_error)):
        return True
    middle = (a.mean_confidence + b.mean_confidence) / 2
    own = target.standard_error(a, b)
    noise = float(np.sqrt(own**2 + (a.standard_error**2 + b.standard_error**2) / 4))
    return abs(target.mean_confidence - middle) < 2 * noise


def _accuracy_doubt(n: int, estimated: float, a: SetSummary, b: SetSummary) -> bool:
    """As for the mean, with accuracies and the standard errors of shares of rows.

    A few rows that are all above the threshold do not make the estimate certain: it is taken to
    vary no less than the accuracies of the sets.
    """
    variances = [s.accuracy * (1 - s.accuracy) for s in (a, b)]
    of_sets = variances[0] / a.n + variances[1] / b.n
    if abs(a.accuracy - b.accuracy) < 2 * float(np.sqrt(of_sets)):
        return True
    own = max(estimated * (1 - estimated), *variances) / n
    middle = (a.accuracy + b.accuracy) / 2
    return abs(estimated - middle) < 2 * float(np.sqrt(own + of_sets / 4))


def _wasserstein_doubt(target: TargetSummary, a: SetSummary, b: SetSummary, margin: float) -> bool:
    """Whether two distances differ by noise only; the target's own noise enters both."""
    own = 2 * target.standard_error(a, b)
    return margin < 2 * float(np.sqrt(own**2 + a.standard_error**2 + b.standard_error**2))


def _ks_doubt(target: TargetSummary, a: SetSummary, b: SetSummary, margin: float) -> bool:
    """Whether two KS statistics, each known to about 0.26 √(1/n + 1/m), differ by noise only."""
    return margin < 2 * 0.26 * float(np.sqrt(2 / target.n + 1 / a.n + 1 / b.n))
