"""What a method keeps of a surrogate set once it is fitted: a few numbers, no rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SetSummary:
    """A surrogate set in numbers.

    Attributes:
        name: What it is called in tables and messages.
        corruption: The corruption that made it, if known; ``None`` for the clean set.
        severity: Its strength, 0 for the clean set; ``None`` if not known.
        n: Rows.
        mean_confidence: Mean of the raw p_max.
        sd_confidence: Standard deviation of the raw p_max.
        accuracy: Share of rows whose largest logit is the label's.
    """

    name: str
    corruption: str | None
    severity: int | None
    n: int
    mean_confidence: float
    sd_confidence: float
    accuracy: float

    @property
    def standard_error(self) -> float:
        """Standard error of ``mean_confidence``."""
        return self.sd_confidence / float(self.n) ** 0.5
