"""A study from images to tables and figures; a run made again from its stored scores."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal._checks import check_count
from shiftcal._files import atomic_write, make_folder
from shiftcal.errors import FileError
from shiftcal.studies.adapting.plan import AdaptationPlan, AnyPlan
from shiftcal.studies.again import PLAN, repair
from shiftcal.studies.archive import Archive
from shiftcal.studies.course import Course, Done
from shiftcal.studies.folder import (
    SPLITS,
    begin,
    check_free,
    check_made_of,
    drop_splits,
    write_text,
)
from shiftcal.studies.opened import ABOUT, RECORDS, Run
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.plan.text import to_toml
from shiftcal.studies.planned import study_of, variants_of
from shiftcal.studies.record import write_records
from shiftcal.studies.results import Results
from shiftcal.studies.stages.about import (
    digests_of,
    left_out_of,
    scoring_of,
    where_it_ran,
)
from shiftcal.studies.stages.estimate import Estimate, estimate
from shiftcal.studies.stages.evaluation import evaluate
from shiftcal.studies.stages.rehearsal import check_settings
from shiftcal.studies.stages.reporting import report
from shiftcal.studies.stages.scoring import Means, Wanted, score_sets, wanted_of
from shiftcal.studies.stages.sources import Sources, check_made, open_sources
from shiftcal.studies.variant import CLEAN, Variant


def reproduce(
    plan: AnyPlan,
    folder: str | os.PathLike[str],
    *,
    means: Means | None = None,
    workers: int = 1,
    skip_missing: bool = False,
    announce: Callable[[Estimate], None] | None = None,
) -> Done:
    """Run a study; run again, it goes on where it stopped, and redoes only what a change asks for.

    Args:
        plan: The plan.
        folder: Where everything is written: ``plan.toml``, ``scores/``, ``splits/``,
            ``evaluated/``, ``records.csv``, ``tables/``, ``figures/``, ``data/``, ``report.md``,
            ``report.json``, ``run.json``; of domain adaptation ``features/`` and ``trainings/`` in
            the place of scores and splits.
        means: How the scoring is done.
        workers: Processes that evaluate, and train.
        skip_missing: Whether natural targets, training images and domains that are not there are
            left out.
        announce: Told how long it will take before it starts.

    Raises:
        MissingData: If data is not there; the message says what to get and where to put it.
        InputError: If the plan cannot be run.
        FileError: If something cannot be written; what is done is kept.
    """
    course = _Course(means or Means(), check_count(workers, name="workers"))
    target = Path(folder)
    if isinstance(plan, AdaptationPlan):
        from shiftcal.studies.adapting.run import reproduce_adaptation

        return reproduce_adaptation(
            plan, target, course, skip_missing=skip_missing, announce=announce
        )
    sources, variants, wanted = _opened(plan, target, skip_missing=skip_missing)
    plan = sources.plan
    make_folder(target)
    course.start(target, to_toml(plan))
    begin(target, course.text)
    course.lap("opening")
    if announce is not None:
        announce(estimate(sources, wanted, variants, target, means=course.means, workers=workers))
        course.lap("estimate")
    archive, scored = score_sets(sources, wanted, target, course.means, check=course.check)
    course.lap("scoring")
    return course.finish(plan, variants, archive, scored=scored, missing=sources.missing)


def forecast(
    plan: AnyPlan,
    folder: str | os.PathLike[str],
    *,
    means: Means | None = None,
    workers: int = 1,
    skip_missing: bool = False,
) -> Estimate:
    """How long :func:`reproduce` will take with the same arguments; the folder stays as it is.

    Raises:
        MissingData: As :func:`reproduce`.
        InputError: If the plan cannot be run.
    """
    check_count(workers, name="workers")
    target = Path(folder)
    if isinstance(plan, AdaptationPlan):
        from shiftcal.studies.adapting.run import forecast_adaptation

        return forecast_adaptation(
            plan, target, means or Means(), workers=workers, skip_missing=skip_missing
        )
    sources, variants, wanted = _opened(plan, target, skip_missing=skip_missing)
    how = means or Means()
    return estimate(sources, wanted, variants, target, means=how, workers=workers)


def rebuild(
    folder: str | os.PathLike[str], *, means: Means | None = None, workers: int = 1
) -> Done:
    """Make records, tables and figures of a run again from its stored scores; no model is run.

    What the run left out is still said, as ``run.json`` knows it.

    Args:
        folder: Of the run.
        means: How progress is told.
        workers: Processes that evaluate what is not evaluated yet.

    Raises:
        FileError: If its scores are not all there.
    """
    course = _Course(means or Means(), check_count(workers, name="workers"))
    target = Path(folder)
    plan = Run(target).plan
    if isinstance(plan, AdaptationPlan):
        from shiftcal.studies.adapting.run import rebuild_adaptation

        return rebuild_adaptation(plan, target, course)
    course.start(target, (target / PLAN).read_bytes().decode())
    archive = Archive.open(target)
    variants = variants_of(plan, len(archive.scores(CLEAN).logits))
    for name in wanted_of(plan, variants).names:
        if name not in archive.entries:
            raise FileError(
                f"{target} has no scores of {name}, which its plan asks for. Run the plan again: "
                f"{repair(target)}"
            )
    check_made_of(plan, archive)
    course.lap("opening")
    missing = left_out_of(course.earlier)
    return course.finish(plan, variants, archive, missing=missing)


class _Course(Course):
    """The same to its end, from scores."""

    def finish(
        self,
        plan: Plan,
        variants: list[Variant],
        archive: Archive,
        *,
        scored: int = 0,
        missing: tuple[str, ...] = (),
    ) -> Done:
        """Everything that needs scores only."""
        target = archive.folder
        self.check()
        splits = _write_splits(plan, archive)
        records, evaluated = evaluate(
            plan, variants, archive, workers=self.workers, reporting=self.means.reporting
        )
        self.check()
        write_records(records, target / RECORDS)
        self.lap("evaluation")
        results = Results(plan, tuple(records), archive)
        findings = report(study_of(plan), results, missing=missing)
        self.check()
        self.lap("report")
        done = Done(target, findings, scored, evaluated, len(records), self.seconds, missing)
        about = {"study": plan.study, **_about(done, archive, splits, self.earlier)}
        write_text(target / ABOUT, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
        return done


def _opened(
    plan: Plan, folder: Path, *, skip_missing: bool
) -> tuple[Sources, list[Variant], Wanted]:
    """What a run needs, before anything is written."""
    check_free(folder)
    study_of(plan)
    sources = open_sources(plan, skip_missing=skip_missing)
    variants = variants_of(sources.plan, len(sources.images))
    wanted = wanted_of(sources.plan, variants)
    check_made(wanted.made)
    check_settings(variants)
    return sources, variants, wanted


def _about(
    done: Done,
    archive: Archive,
    splits: dict[str, dict[str, str]],
    earlier: dict[str, Any],
) -> dict[str, Any]:
    return {
        **where_it_ran(),
        "model": archive.model,
        **scoring_of(earlier, scored=done.scored, seconds=done.seconds.get("scoring", 0.0)),
        "evaluations": done.evaluated,
        "records": done.records,
        "seconds": done.seconds,
        "splits": splits,
        "left_out": list(done.missing),
        "remarks": list(done.findings.remarks),
    }


def _write_splits(plan: Plan, archive: Archive) -> dict[str, dict[str, str]]:
    """The rows of every split, so that nobody has to draw them again; their digests by seed."""
    folder = archive.folder / SPLITS
    make_folder(folder)
    digests = {}
    for seed in plan.seeds:
        split = archive.split(seed, plan.calibration.images)
        digests[str(seed)] = digests_of(split)
        with (
            atomic_write(folder / f"seed-{seed}.npz", durable=False) as temporary,
            temporary.open("wb") as opened,
        ):
            np.savez(opened, calibration=split.calibration, test=split.test)
    with suppress(OSError):
        drop_splits(archive.folder, but=plan.seeds)
    return digests
