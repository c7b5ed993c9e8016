"""A study of domain adaptation, from images to tables and figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from shiftcal._files import make_folder
from shiftcal.adaptation.frozen import Frozen
from shiftcal.errors import FileError, InputError
from shiftcal.studies.adapting.alone import check_alone
from shiftcal.studies.adapting.cells import variants_of
from shiftcal.studies.adapting.estimate import estimate
from shiftcal.studies.adapting.evaluation import evaluate
from shiftcal.studies.adapting.features import make_features
from shiftcal.studies.adapting.findings import TITLE, findings_of
from shiftcal.studies.adapting.origins import Origin, sentence, with_earlier
from shiftcal.studies.adapting.plan import AdaptationPlan
from shiftcal.studies.adapting.results import AdaptationResults, Failure
from shiftcal.studies.adapting.sources import Domains, open_domains
from shiftcal.studies.adapting.training import is_left, train_all
from shiftcal.studies.adapting.trainings import Training, trainings_of
from shiftcal.studies.again import PLAN, repair
from shiftcal.studies.course import Course, Done
from shiftcal.studies.folder import begin, check_free, write_text
from shiftcal.studies.opened import ABOUT, RECORDS
from shiftcal.studies.plan.text import to_toml
from shiftcal.studies.record import write_records
from shiftcal.studies.stages.about import left_out_of, scoring_of, where_it_ran
from shiftcal.studies.stages.estimate import Estimate
from shiftcal.studies.stages.rehearsal import check_settings
from shiftcal.studies.stages.reporting import AboutRun, write_findings
from shiftcal.studies.stages.scoring import Means

_HOW = (
    "The numbers come from rows of [`records.csv`](records.csv), one for each method on each "
    "trained network: panel is the trainer, target the task, split the seed. What is known of the "
    "networks themselves is in [`data/trainings.csv`](data/trainings.csv). A row names the file of "
    "logits of the held-out target that it was computed from; the surrogate sets, the features of "
    "the source and the weights are beside it. `studies.Run(folder).recompute(record)` computes it "
    "again from them."
)


def reproduce_adaptation(
    plan: AdaptationPlan,
    folder: Path,
    course: Course,
    *,
    skip_missing: bool = False,
    announce: Callable[[Estimate], None] | None = None,
) -> Done:
    """Run a study; see :func:`shiftcal.studies.reproduce`."""
    domains = _opened(plan, folder, skip_missing=skip_missing)
    plan = domains.plan
    make_folder(folder)
    course.start(folder, to_toml(plan))
    begin(folder, course.text)
    course.lap("opening")
    if announce is not None:
        announce(estimate(domains, folder, course.means, workers=course.workers))
        course.lap("estimate")
    features: dict[str, Frozen] = {}
    scored = 0
    if plan.network.frozen:
        features, scored = make_features(domains, folder, course.means)
        course.check()
        course.lap("features")
    trained = train_all(
        domains,
        features,
        folder,
        workers=course.workers,
        reporting=course.means.reporting,
        check=course.check,
    )
    course.lap("training")
    origins = with_earlier(plan, course.earlier, domains.origins)
    return _finished(plan, course, origins, scored=scored, trained=trained, missing=domains.missing)


def forecast_adaptation(
    plan: AdaptationPlan, folder: Path, means: Means, *, workers: int, skip_missing: bool
) -> Estimate:
    """How long it will take; see :func:`shiftcal.studies.forecast`."""
    domains = _opened(plan, folder, skip_missing=skip_missing)
    return estimate(domains, folder, means, workers=workers)


def rebuild_adaptation(plan: AdaptationPlan, folder: Path, course: Course) -> Done:
    """Records, tables and figures again from what is stored; see :func:`shiftcal.studies.rebuild`.

    Raises:
        FileError: If a network that the plan asks for is not there.
    """
    check_alone()
    course.start(folder, (folder / PLAN).read_bytes().decode())
    for training in trainings_of(plan):
        if is_left(training, folder):
            raise FileError(
                f"{folder} has no network of {training.title}, which its plan asks for. Run the "
                f"plan again: {repair(folder)}"
            )
    course.lap("opening")
    origins = with_earlier(plan, course.earlier)
    return _finished(plan, course, origins, missing=left_out_of(course.earlier))


def _opened(plan: AdaptationPlan, folder: Path, *, skip_missing: bool) -> Domains:
    """What a run needs, before anything is written."""
    check_alone()
    check_free(folder)
    check_settings(variants_of(plan))
    _check_device(plan)
    return open_domains(plan, skip_missing=skip_missing)


def _check_device(plan: AdaptationPlan) -> None:
    """Refuse a device that is not here before hours of scoring."""
    from shiftcal.adaptation.devices import resolve_device

    try:
        resolve_device(plan.training.device)
    except InputError as error:
        raise InputError(f"{plan.where} [training] {error}") from error


def _finished(
    plan: AdaptationPlan,
    course: Course,
    origins: tuple[Origin, ...],
    *,
    scored: int = 0,
    trained: int = 0,
    missing: tuple[str, ...] = (),
) -> Done:
    """Everything that needs the networks' outputs only."""
    folder = course.folder
    course.check()
    trainings = trainings_of(plan)
    there = [training for training in trainings if training.finished(folder)]
    records, facts, evaluated = evaluate(
        plan, there, folder, workers=course.workers, reporting=course.means.reporting
    )
    course.check()
    write_records(records, folder / RECORDS)
    course.lap("evaluation")
    failures = _failures(trainings, folder)
    results = AdaptationResults(plan, tuple(records), tuple(facts), failures)
    findings = findings_of(results)
    how = f"{_HOW}\n\n{sentence(origins)}"
    write_findings(findings, AboutRun(folder, plan, TITLE, how, missing))
    course.check()
    course.lap("report")
    done = Done(folder, findings, scored, evaluated, len(records), course.seconds, missing, trained)
    _write_about(plan, done, course, origins, failed=len(failures))
    return done


def _failures(trainings: Sequence[Training], folder: Path) -> tuple[Failure, ...]:
    found = (t.failure(folder) for t in trainings if not t.finished(folder))
    return tuple(failure for failure in found if failure is not None)


def _write_about(
    plan: AdaptationPlan,
    done: Done,
    course: Course,
    origins: tuple[Origin, ...],
    *,
    failed: int,
) -> None:
    took = course.seconds.get("features", 0.0)
    ran = where_it_ran()
    with suppress(PackageNotFoundError):  # tables are made again without it
        ran["versions"]["torch"] = version("torch")
    about = {
        "study": plan.study,
        **ran,
        **scoring_of(course.earlier, scored=done.scored, seconds=took),
        **_training_of(course, done.trained or 0),
        "diverged": failed,
        "domains": [asdict(origin) for origin in origins],
        "evaluations": done.evaluated,
        "records": done.records,
        "seconds": done.seconds,
        "left_out": list(done.missing),
        "remarks": list(done.findings.remarks),
    }
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    write_text(done.folder / ABOUT, text)


def _training_of(course: Course, trained: int) -> dict[str, object]:
    """How many networks were trained and how long that took, by the last run that trained any."""
    seconds = course.seconds.get("training", 0.0)
    before = course.earlier.get("trainings")
    if not trained and isinstance(before, int):
        trained, seconds = before, course.earlier.get("training_seconds", seconds)
    return {"trainings": trained, "training_seconds": seconds}
