"""One target of a study on its own: its surrogate bank and its test rows."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from shiftcal._registry import suggest
from shiftcal._types import Floats
from shiftcal.errors import InputError, UnknownName
from shiftcal.scores import Scores
from shiftcal.studies.adapting.plan import AdaptationPlan
from shiftcal.studies.again import PLAN
from shiftcal.studies.archive import INDEX, Archive
from shiftcal.studies.opened import Run
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.stages.outcome import bank_of, rows_of
from shiftcal.studies.variant import Ladder, Target
from shiftcal.surrogates import SurrogateBank


@dataclass(frozen=True, eq=False)
class Task:
    """A target of a study as its first split has it.

    Attributes:
        bank: The plan's surrogate sets, of the calibration rows.
        target: Test rows of the target, with labels.
        source_features: Of training images, if the study has them.
        files: What it was read from; the index has the checksums of all scores.
    """

    bank: SurrogateBank
    target: Scores
    source_features: Floats | None
    files: tuple[Path, ...]


def task_of(folder: Path, name: str | None) -> Task:
    """A target of a study that has been run.

    Args:
        folder: Of the run.
        name: Of the target, as records have it.

    Raises:
        UnknownName: If the study has no such target.
        InputError: If none is named, or the study trained a network for every target.
        FileError: If the scores are not there.
    """
    run = Run(folder)
    plan = run.plan
    if isinstance(plan, AdaptationPlan):
        raise InputError(f"{folder} has a network for every target. Name one: {_training(folder)}")
    archive = run.archive
    if name is None:
        raise InputError(
            f"{folder} is a study with several targets. Name one of them behind it: "
            f"{', '.join(archive.entries)}."
        )
    if name not in archive.entries:
        raise UnknownName(
            f"{folder} has no target {name!r}. {suggest(name, list(archive.entries))}"
        )
    return _task(archive, plan, name)


def _task(archive: Archive, plan: Plan, name: str) -> Task:
    seed, told = plan.seeds[0], plan.calibration
    split = archive.split(seed, told.images)
    target = Target(name, name, None if archive.entries[name].own else 0)
    rows = rows_of(archive.scores(name), target, split)
    return Task(
        bank_of(archive, Ladder(told.corruption, told.severities), split, seed=seed),
        Scores(rows.logits, labels=rows.labels, features=rows.features, source=name),
        archive.train_features(),
        (archive.folder / PLAN, archive.folder / INDEX),
    )


def _training(folder: Path) -> str:
    found = sorted(folder.glob("trainings/*/*/seed-*/adapt.json"))
    if not found:
        return f"none in {folder / 'trainings'} is finished."
    return f"shiftcal report {shlex.quote(str(found[0].parent))} -o report.html"
