"""A target under the temperature of every surrogate set, from stored scores."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal import metrics
from shiftcal._types import Confidence
from shiftcal.errors import FitWarning
from shiftcal.maps.temperature import Temperature
from shiftcal.numerics.softmax import p_max
from shiftcal.studies.archive import Stored
from shiftcal.surrogates import SurrogateBank


@dataclass(frozen=True, eq=False)
class Rung:
    """One surrogate set.

    Attributes:
        name: Of the set.
        p_max: ``(n,)`` raw, of its images.
        mean: Of these.
        temperature: Of least NLL on it.
    """

    name: str
    p_max: Confidence
    mean: float
    temperature: float


@dataclass(frozen=True)
class Seen:
    """A target, and what each surrogate's temperature makes of it; fractions.

    Attributes:
        mean: Of its raw p_max.
        accuracy: Of the model; no temperature changes it.
        confidences: Mean confidence under each temperature.
        eces: ECE under each temperature.
        distances: ``|mean of the target - mean of the surrogate|``.
    """

    mean: float
    accuracy: float
    confidences: tuple[float, ...]
    eces: tuple[float, ...]
    distances: tuple[float, ...]

    @property
    def nearest(self) -> int:
        """The surrogate whose mean is the closest, the first of equals: what SAC takes."""
        return int(np.argmin(self.distances))

    @property
    def best(self) -> int:
        """The surrogate under whose temperature the ECE is least, the first of equals."""
        return int(np.argmin(self.eces))


def rungs_of(bank: SurrogateBank) -> list[Rung]:
    """The sets of a bank, each with the temperature fitted on it."""
    found = []
    for each in bank:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # a wild temperature shows in the table
            scaling = Temperature().fit(each.logits, each.labels)
        confidence = each.confidence()
        found.append(Rung(each.name, confidence, float(confidence.mean()), scaling.temperature_))
    return found


def seen_under(rungs: list[Rung], target: Stored, *, bins: int) -> Seen:
    """A target under the temperature of each surrogate.

    Args:
        rungs: The surrogates.
        target: Its test rows, with labels.
        bins: Of the ECE.
    """
    correct = correctness(target)
    mean = float(p_max(target.logits).mean())
    calibrated = [p_max(target.logits, rung.temperature) for rung in rungs]
    return Seen(
        mean=mean,
        accuracy=float(correct.mean()),
        confidences=tuple(float(each.mean()) for each in calibrated),
        eces=tuple(metrics.ece(each, correct, n_bins=bins) for each in calibrated),
        distances=tuple(abs(mean - rung.mean) for rung in rungs),
    )


def correctness(target: Stored) -> NDArray[np.bool_]:
    """Whether the model's class is right, row by row."""
    assert target.labels is not None
    right: NDArray[np.bool_] = target.logits.argmax(axis=1) == target.labels
    return right
