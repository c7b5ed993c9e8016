"""How far the surrogate sets of a corruption reach, which is known before any target is seen."""

from __future__ import annotations

from dataclasses import dataclass

from shiftcal.numerics.softmax import p_max
from shiftcal.studies.archive import Archive
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.variant import CLEAN, Ladder


@dataclass(frozen=True)
class Reach:
    """The ends of a ladder of surrogate sets; fractions.

    Attributes:
        highest: Greatest mean raw confidence of its sets.
        lowest: Least.
        accuracy: Least accuracy of its sets.
    """

    highest: float
    lowest: float
    accuracy: float

    @property
    def width(self) -> float:
        """How much of the scale of mean confidence the ladder covers."""
        return self.highest - self.lowest


def reach_of(plan: Plan, archive: Archive, corruption: str) -> Reach | None:
    """The reach of a corruption's sets on the calibration images of the first split.

    Args:
        plan: Whose severities, images and seeds.
        archive: The stored scores.
        corruption: What made the sets.

    Returns:
        ``None`` if a set of the ladder is not stored.
    """
    sets = Ladder(corruption, plan.calibration.severities).sets
    if any(name not in archive.entries for name in sets):
        return None
    rows = archive.split(plan.seeds[0], plan.calibration.images).calibration
    labels = archive.scores(CLEAN).labels
    assert labels is not None
    means, accuracies = [], []
    for name in sets:
        logits = archive.scores(name).logits[rows]
        means.append(float(p_max(logits).mean()))
        accuracies.append(float((logits.argmax(axis=1) == labels[rows]).mean()))
    return Reach(max(means), min(means), min(accuracies))
