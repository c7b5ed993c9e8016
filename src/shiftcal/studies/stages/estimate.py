"""How long a study will take, said before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from shiftcal.scoring.pending import measured_rate
from shiftcal.studies.archive import Archive
from shiftcal.studies.opened import ABOUT
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.stages.about import read_about
from shiftcal.studies.stages.cells import Cell, cells_of
from shiftcal.studies.stages.costs import evaluation_seconds
from shiftcal.studies.stages.enough import one_output
from shiftcal.studies.stages.kept import read_outcomes
from shiftcal.studies.stages.left import Left
from shiftcal.studies.stages.rehearsal import Shape
from shiftcal.studies.stages.scoring import Means, Wanted
from shiftcal.studies.stages.sources import Sources
from shiftcal.studies.variant import Variant

# Figures and tables, in seconds, before a run has told what its own take.
_REPORT_SECONDS = 10.0


@dataclass(frozen=True)
class Estimate:
    """What is to be done, and how long it takes.

    Attributes:
        images: To be scored; those that are stored already do not count.
        rate: Images a second, as measured; 0 if there are none to be scored.
        evaluations: Of variants on targets in splits; those that are kept already do not count.
        evaluation_seconds: What they take.
        bytes: What the scores take on disk.
        report_seconds: What figures and tables take.
        trainings: Networks to be trained; ``None`` for a study that trains none.
        training_seconds: What they take, with their outputs.
    """

    images: int
    rate: float
    evaluations: int
    evaluation_seconds: float
    bytes: int
    report_seconds: float = _REPORT_SECONDS
    trainings: int | None = None
    training_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """All of it."""
        scoring = self.images / self.rate if self.images else 0.0
        return scoring + self.training_seconds + self.evaluation_seconds + self.report_seconds

    def __str__(self) -> str:
        parts = []
        if self.images:
            took = in_words(self.images / self.rate)
            parts.append(
                f"{self.images:,} images to score at about {self.rate:,.0f} a second ({took}), "
                f"{_size(self.bytes)} on disk"
            )
        elif self.trainings is None:
            parts.append("all images are scored already")
        if self.trainings is not None:
            took = in_words(self.training_seconds)
            plural = "" if self.trainings == 1 else "s"
            trained = f"{self.trainings:,} training{plural} ({took})"
            parts.append(trained if self.trainings else "all networks are trained already")
        evaluating = "all evaluations are made already"
        if self.evaluations:
            took = in_words(self.evaluation_seconds)
            evaluating = f"{self.evaluations:,} evaluations ({took})"
        return f"{'; '.join([*parts, evaluating])}. About {in_words(self.seconds)} in all."


def _size(count: int) -> str:
    return f"{count / 1e6:,.0f} MB" if count >= 1e6 else "less than 1 MB"


def in_words(seconds: float) -> str:
    """A time to two digits or so: nobody knows it better beforehand."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{seconds / 3600:.1f} h"


def estimate(
    sources: Sources,
    wanted: Wanted,
    variants: Sequence[Variant],
    folder: Path,
    *,
    means: Means,
    workers: int = 1,
) -> Estimate:
    """Count what is left to be done; measure model and methods for some seconds, if anything is."""
    plan = sources.plan
    left = Left.of(sources, wanted, folder, means)
    cells = _missing(plan, variants, left.archive)
    if not left.images and not cells:
        return Estimate(0, 0.0, 0, 0.0, 0, report_seconds=report_seconds(folder))
    work = left.job.work
    made = one_output(work.model, work.images)
    k = made.logits.shape[1]
    d = 0 if made.features is None else made.features.shape[1]
    shape = Shape(
        calibration=plan.calibration.images,
        test=len(work.images) - plan.calibration.images,
        train=0 if sources.train is None else len(sources.train),
        classes=k,
        features=d,
    )
    own = {name: len(images) for name, images in sources.sets.items()}
    return Estimate(
        images=left.images,
        rate=measured_rate(left.job) if left.images else 0.0,
        evaluations=len(cells),
        evaluation_seconds=evaluation_seconds(plan, cells, shape, own=own, workers=workers),
        bytes=left.images * (k + d) * (2 if plan.model.dtype == "float16" else 4),
        report_seconds=report_seconds(folder),
    )


def report_seconds(folder: Path) -> float:
    """What the report of the run before took, with opening what it is of.

    Args:
        folder: Of the run.
    """
    told = read_about(folder / ABOUT).get("seconds")
    took = (
        [told.get(stage, 0.0) for stage in ("opening", "report")] if isinstance(told, dict) else []
    )
    known = all(isinstance(each, (int, float)) and 0 <= each < inf for each in took)
    return sum(took) if took and known and took[-1] else _REPORT_SECONDS


def _missing(plan: Plan, variants: Sequence[Variant], archive: Archive) -> list[Cell]:
    """Evaluations that are not there yet; what two variants have in common counts once."""
    known = read_outcomes(archive.folder).keys()
    cells = {cell.key: cell for cell in cells_of(plan, variants, archive)}
    return [cell for key, cell in cells.items() if key not in known]
