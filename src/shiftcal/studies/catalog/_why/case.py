"""One target in one split under the temperature of every surrogate set, and all of them as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from shiftcal.studies.catalog._why.measured import Rung, Seen
from shiftcal.studies.variant import Target

_COLUMNS = (
    "split",
    "target",
    "corruption",
    "severity",
    "target_mean_p_max",
    "accuracy",
    "surrogate",
    "mean_p_max",
    "distance",
    "temperature",
    "confidence",
    "ece",
    "chosen",
    "best",
)


@dataclass(frozen=True, eq=False)
class Case:
    """One target in one split.

    Attributes:
        target: The target.
        split: Seed of the split.
        rungs: The surrogate sets.
        seen: It under the temperature of every surrogate.
    """

    target: Target
    split: int
    rungs: Sequence[Rung]
    seen: Seen

    @property
    def hit(self) -> float:
        """1 if the closest mean gives the least ECE."""
        return float(self.seen.nearest == self.seen.best)

    @property
    def near_hit(self) -> float:
        """1 if it is the best set or one beside it."""
        return float(abs(self.seen.nearest - self.seen.best) <= 1)

    @property
    def ece_nearest(self) -> float:
        """ECE under the temperature of the closest mean."""
        return self.seen.eces[self.seen.nearest]

    @property
    def ece_best(self) -> float:
        """The least ECE of any surrogate's temperature."""
        return self.seen.eces[self.seen.best]

    @property
    def ece_clean(self) -> float:
        """ECE under the temperature of the clean set."""
        return self.seen.eces[0]


def by_split(cases: Sequence[Case]) -> list[list[Case]]:
    """The cases of every split, in the order of the splits."""
    found: dict[int, list[Case]] = {}
    for case in cases:
        found.setdefault(case.split, []).append(case)
    return list(found.values())


def cases_to_csv(cases: Sequence[Case]) -> str:
    """A row for each split, target and surrogate set, all digits kept; fractions, not percent.

    ``accuracy``, ``confidence`` and ``ece`` are the target's under the temperature of the surrogate
    set; ``chosen`` is 1 for the closest mean, ``best`` for the least ECE.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for case in cases:
        target, seen = case.target, case.seen
        severity = "" if target.severity is None else target.severity
        whole = (case.split, target.name, target.corruption, severity, seen.mean, seen.accuracy)
        for j, rung in enumerate(case.rungs):
            writer.writerow(
                (
                    *whole,
                    rung.name,
                    rung.mean,
                    seen.distances[j],
                    rung.temperature,
                    seen.confidences[j],
                    seen.eces[j],
                    int(j == seen.nearest),
                    int(j == seen.best),
                )
            )
    return text.getvalue()


def spoken(name: str) -> str:
    """A set's name for people: ``pixelate-3`` is pixelate 3."""
    return name.replace("_", " ").replace("-", " ")
