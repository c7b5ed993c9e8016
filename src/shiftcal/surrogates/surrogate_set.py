"""One set of a bank: labelled logits of the calibration samples under one corruption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shiftcal._checks import check_count, check_features, check_labels, check_logits
from shiftcal._types import Floats, Labels, Logits
from shiftcal.numerics.softmax import p_max
from shiftcal.surrogates.summary import SetSummary

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class SurrogateSet:
    """Labelled logits of the calibration samples under one corruption.

    Attributes:
        logits: ``(n, k)``.
        labels: ``(n,)``.
        name: What it is called in tables and messages.
        corruption: What made it; ``None`` for the clean set.
        severity: 0 for the clean set, 1 and up for the others; ``None`` if not known.
        features: ``(n, d)``, needed by CPCS and TransCal of the clean set only.
    """

    logits: Logits
    labels: Labels
    name: str
    corruption: str | None = None
    severity: int | None = None
    features: Floats | None = None

    def __post_init__(self) -> None:
        logits = check_logits(self.logits)
        n, k = logits.shape
        object.__setattr__(self, "logits", logits)
        object.__setattr__(self, "labels", check_labels(self.labels, n=n, k=k))
        if self.features is not None:
            features = check_features(self.features, name="features", n=n)
            object.__setattr__(self, "features", features)
        if self.severity is not None:
            whose = f"severity of set {self.name!r}"
            object.__setattr__(self, "severity", check_count(self.severity, name=whose, least=0))

    def __len__(self) -> int:
        return len(self.logits)

    def confidence(self) -> NDArray[np.float64]:
        """Raw p_max of every row."""
        return p_max(self.logits)

    def summary(self) -> SetSummary:
        """The set in numbers."""
        confidence = self.confidence()
        return SetSummary(
            name=self.name,
            corruption=self.corruption,
            severity=self.severity,
            n=len(self),
            mean_confidence=float(confidence.mean()),
            sd_confidence=float(confidence.std()),
            accuracy=float((self.logits.argmax(axis=1) == self.labels).mean()),
        )
