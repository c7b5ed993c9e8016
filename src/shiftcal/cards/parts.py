"""What a calibration card is made of. Data only, each part a table or a section of the card."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

METRICS = ("accuracy", "ece", "nll", "brier")


@dataclass(frozen=True)
class Model:
    """The model behind the bank, as far as the bank says.

    Attributes:
        n_classes: Number of classes.
        classes: Their names in the order of the columns, if known.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.
        digest: Of the model with its preprocessing, as fitted methods keep it.
        spec: The line that makes the model.
        fingerprint: Of the weights.
        preprocessing: What happens to an image before the model sees it.
    """

    n_classes: int
    classes: tuple[str, ...] | None
    input: str
    digest: str | None = None
    spec: str | None = None
    fingerprint: str | None = None
    preprocessing: dict[str, Any] | None = None


@dataclass(frozen=True)
class Calibration:
    """The calibration samples.

    Attributes:
        n: Rows of the clean set.
        label_counts: ``(k,)`` rows of each class.
        digest: SHA-256 of its logits and labels.
        same_rows: Whether all sets of the bank have the same labels in the same order, and so,
            it is taken, the same samples.
        images: Where the samples came from, if the bank says so.
        images_digest: Digest of those.
    """

    n: int
    label_counts: tuple[int, ...]
    digest: str
    same_rows: bool
    images: str | None = None
    images_digest: str | None = None


@dataclass(frozen=True)
class Target:
    """The data that the calibration was chosen for.

    Attributes:
        n: Rows.
        digest: SHA-256 of its logits, and of its labels if it has any.
        mean_confidence: Mean raw p_max.
        label_counts: ``(k,)`` rows of each class; ``None`` without labels.
        source: The file it came from; empty if it came from none.
        model: Digest of the model that scored it, if known.
    """

    n: int
    digest: str
    mean_confidence: float
    label_counts: tuple[int, ...] | None = None
    source: str = ""
    model: str | None = None


@dataclass(frozen=True)
class BankSet:
    """One set of the bank.

    Attributes:
        name: What it is called.
        corruption: What made it; ``None`` for the clean set, and where it is not known.
        severity: How strong, 0 for the clean set; ``None`` if not known.
        n: Rows.
        accuracy: Share of rows that are right.
        mean_confidence: Mean raw p_max.
        temperature: That of least NLL on all its rows.
        converged: Whether that lies within the range that was searched.
        digest: SHA-256 of its logits and labels.
    """

    name: str
    corruption: str | None
    severity: int | None
    n: int
    accuracy: float
    mean_confidence: float
    temperature: float
    converged: bool
    digest: str


@dataclass(frozen=True)
class Applied:
    """The calibration method.

    Attributes:
        name: Its name.
        summary: What it does, in a sentence.
        settings: Every setting; those of a map within it after ``map.``.
        fitted: How it is known to belong to the bank: ``"here"`` (fitted on it for the card),
            ``"same-ladder"`` (its sets are those of the bank), ``"same-answer"`` (a fit on the bank
            gives the same confidences) or ``"not-checked"``.
    """

    name: str
    summary: str
    settings: dict[str, Any]
    fitted: str


@dataclass(frozen=True)
class Measure:
    """A metric with its interval, whose ends are ``None`` where there is none."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Measured:
    """Metrics of a labelled set before and after calibration.

    Attributes:
        name: Of the set.
        n: Rows.
        before: Metric to value, of the raw softmax, or of the model's own probabilities.
        after: The same of the calibrated confidences; ``None`` if they could not be had.
        missing: Why not, in a sentence; empty if they are there.
    """

    name: str
    n: int
    before: dict[str, Measure]
    after: dict[str, Measure] | None
    missing: str = ""


@dataclass(frozen=True)
class Judging:
    """How a card measures.

    Attributes:
        n_bins: Bins of ECE, of equal size.
        level: Coverage of all intervals.
        n_resamples: Bootstrap draws behind an interval; 0 for none.
        seed: Of the draws and of the folds.
        folds: Parts of the calibration rows, each judged by a fit on the others; ``None`` is 5, or
            2 from 2,000 rows on, where half of them tell as much and fits take time.
    """

    n_bins: int = 15
    level: float = 0.95
    n_resamples: int = 400
    seed: int = 0
    folds: int | None = None


@dataclass(frozen=True)
class Limit:
    """Something the card's numbers do not cover.

    Attributes:
        code: A stable word.
        message: The same in sentences.
    """

    code: str
    message: str


@dataclass(frozen=True)
class Provenance:
    """What has to be known to make the card again.

    Attributes:
        date: When it was made, as ISO 8601 writes dates; ``None`` if nobody said.
        command: The command that made it; empty if it was made in Python.
        versions: Package to version.
        files: File to SHA-256, of the files that were read.
    """

    date: str | None = None
    command: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
