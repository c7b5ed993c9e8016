"""What a demonstration found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shiftcal.demo.subject import Target
from shiftcal.report.html import ReportFacts


@dataclass(frozen=True)
class Met:
    """A target and all that is known of it.

    Attributes:
        target: What it is.
        scores: Its file.
        facts: The numbers.
    """

    target: Target
    scores: Path
    facts: ReportFacts

    def to_dict(self) -> dict[str, Any]:
        """What of it is worth keeping beside the report, as JSON can hold it."""
        told = self.facts.to_dict()
        keys = ("name", "temperature", "mean_confidence", "ece")
        return {
            **asdict(self.target),
            "scores": str(self.scores),
            "n": told["target"]["n"],
            "mean_confidence": told["target"]["mean_confidence"],
            "accuracy": told["target"]["accuracy"],
            "estimate": told["estimate"],
            "verdict": told["verdict"]["kind"],
            "methods": [{key: one[key] for key in keys} for one in told["methods"]],
            "missing": told["missing"],
        }


@dataclass(frozen=True)
class Found:
    """The outcome of a demonstration.

    Attributes:
        folder: Where its files are.
        made: How the model came about.
        things: What its images show.
        n_calibration: Images that it is calibrated on.
        n_sets: Sets of the bank.
        corruptions: Those of the bank.
        clean_accuracy: On the calibration images.
        clean_confidence: Mean p_max there.
        met: The targets, the main one first.
        report: The page; ``None`` if it could not be made.
        no_report: Why not; empty if it was.
        remark: What should be known of the choice of all this.
        next: Commands that can be tried on the files, as words.
        seconds: That all of it took.
    """

    folder: Path
    made: str
    things: str
    n_calibration: int
    n_sets: int
    corruptions: tuple[str, ...]
    clean_accuracy: float
    clean_confidence: float
    met: tuple[Met, ...]
    report: Path | None
    no_report: str
    remark: str
    next: tuple[tuple[str, ...], ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return {
            "folder": str(self.folder),
            "model": self.made,
            "n_calibration": self.n_calibration,
            "n_sets": self.n_sets,
            "corruptions": list(self.corruptions),
            "clean_accuracy": self.clean_accuracy,
            "clean_confidence": self.clean_confidence,
            "targets": [one.to_dict() for one in self.met],
            "report": None if self.report is None else str(self.report),
            "no_report": self.no_report,
            "next": [list(words) for words in self.next],
            "seconds": self.seconds,
        }
