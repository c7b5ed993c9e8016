"""What a report is about, what it concludes and how it was made. Data only; fractions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

# Each is a point of a diagram, which must be seen as one.
MOST_BINS = 100

VerdictKind = Literal["over", "under", "uneven", "fine", "worse", "outside", "unclear", "few"]


@dataclass(frozen=True)
class Ranged:
    """A number with the interval around it; both ends ``None`` where there is none."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Judging:
    """How numbers with labels are measured.

    Attributes:
        n_bins: Bins of equal size, of ECE and of the diagrams.
        level: Coverage of all intervals.
        n_resamples: Bootstrap draws behind an interval of ECE; 0 for none.
        seed: Of the bootstrap, and of methods that draw.
    """

    n_bins: int = 15
    level: float = 0.95
    n_resamples: int = 400
    seed: int = 0


@dataclass(frozen=True)
class Provenance:
    """How to make the report again.

    Attributes:
        date: Day it was made on.
        command: The command line, if one made it.
        usage: Commands that calibrate with the method.
        files: File to SHA-256.
        versions: Package to version.
    """

    date: str = ""
    command: str = ""
    usage: str = ""
    files: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TargetFacts:
    """The data the report is about.

    Attributes:
        name: Its file, or another name.
        n: Rows.
        n_classes: Columns.
        mean_confidence: Mean raw p_max.
        accuracy: Share of rows that are right, if labels tell.
    """

    name: str
    n: int
    n_classes: int
    mean_confidence: float
    accuracy: Ranged | None


@dataclass(frozen=True)
class EstimateFacts:
    """The accuracy as estimated without labels."""

    value: float
    low: float
    high: float
    level: float
    estimator: str


@dataclass(frozen=True)
class Verdict:
    """What to make of it, in plain words.

    Attributes:
        kind: Which case it is.
        headline: In a few words.
        reason: The numbers behind it, in a sentence or two.
        advice: What to do, a sentence each.
    """

    kind: VerdictKind
    headline: str
    reason: str
    advice: tuple[str, ...]
