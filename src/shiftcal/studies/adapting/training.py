"""Every network of a plan trained: one after the other, or several at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from shiftcal._files import make_folder
from shiftcal.adaptation import adapt
from shiftcal.adaptation.frozen import Frozen
from shiftcal.datasets import ImageSet
from shiftcal.errors import FitError
from shiftcal.scoring.progress import showing
from shiftcal.scoring.run import Reporting
from shiftcal.studies.adapting.choosing import changes_of
from shiftcal.studies.adapting.content import Content
from shiftcal.studies.adapting.plan import AdaptationPlan
from shiftcal.studies.adapting.sources import Domains
from shiftcal.studies.adapting.trainings import Training, trainings_of
from shiftcal.studies.stages.processes import in_processes


@dataclass(frozen=True, eq=False)
class Job:
    """One training with what it takes; can be sent to another process.

    Attributes:
        training: Which.
        folder: Where to.
        source: Images of the source.
        target: Images of the target.
        options: Of :func:`shiftcal.adaptation.adapt`.
        threads: That torch uses; ``None`` is as many as it does already.
    """

    training: Training
    folder: Path
    source: ImageSet
    target: ImageSet
    options: Mapping[str, Any] = field(default_factory=dict)
    threads: int | None = None

    def done(self, **more: Any) -> str | None:
        """Train, and store the outputs; the reason if it diverged.

        Args:
            **more: Further options.
        """
        from shiftcal.adaptation.devices import cpu_threads

        make_folder(self.folder.parent)
        with cpu_threads(self.threads):
            try:
                adapt(self.source, self.target, self.folder, **self.options, **more)
            except FitError as error:
                # What it advises is for somebody who trains one network.
                return f"{str(error).partition('. ')[0].removesuffix('.')}."
        return None


def train_all(
    domains: Domains,
    features: Mapping[str, Frozen],
    run: Path,
    *,
    workers: int = 1,
    reporting: Reporting | None = None,
    check: Callable[[], None] = lambda: None,
) -> int:
    """Have every network of a plan trained below the folder of a run, whatever was done before.

    One that diverges is written down and left out; the same seed would diverge again. Those that
    were trained before must be of what is there now; new labels of a target are taken over.

    Args:
        domains: The images.
        features: By name of the domain, if the backbone is frozen.
        run: Folder of the run.
        workers: Processes: several trainings at once if the plan says how many threads each has,
            else those that read images for the one that is under way.
        reporting: How progress is told.
        check: Called after each training; raises if the run must not go on.

    Returns:
        How many were trained by this call.

    Raises:
        InputError: If images cannot be used.
        FileError: If something cannot be written; what is done is kept. If a finished training is
            of other images or labels.
    """
    plan, told = domains.plan, reporting or Reporting()
    content, wanted = Content(domains, features, told), trainings_of(plan)
    content.bring_up([training for training in wanted if training.finished(run)], run)
    left = [training for training in wanted if is_left(training, run, content)]
    jobs = [job_of(domains, features, training, run) for training in left]
    threads = threads_of(plan)
    results = (
        _one_by_one(jobs, workers, told)
        if threads is None
        else _at_once(jobs, max(1, workers // threads), told)
    )
    with closing(results):
        for training, reason in results:
            if reason is not None:
                training.fail(run, reason, content.of(training))
            check()
    return len(jobs)


def is_left(training: Training, run: Path, content: Content | None = None) -> bool:
    """Whether a training is neither finished nor known to diverge.

    Args:
        training: Which.
        run: Folder of the run.
        content: Of the domains; one that diverged on other images or labels is left, too.
    """
    if training.finished(run):
        return False
    made_of = None if content is None else partial(content.of, training)
    return training.failure(run, made_of) is None


def threads_of(plan: AdaptationPlan) -> int | None:
    """Threads of each training; heads on frozen features need no more than one."""
    return plan.training.threads or (1 if plan.network.frozen else None)


def job_of(domains: Domains, features: Mapping[str, Frozen], training: Training, run: Path) -> Job:
    """A training with what it takes."""
    plan, pair = domains.plan, training.pair
    options: dict[str, Any] = {
        "trainer": training.trainer.name,
        "recipe": plan.training.recipe,
        "changes": changes_of(plan.training, training.trainer),
        "transform": plan.training.transform,
        "seed": training.seed,
        "corruption": plan.calibration.corruption,
        "severities": plan.calibration.severities,
        "select": plan.training.select,
        "device": plan.training.device,
        "precision": plan.training.precision,
    }
    if plan.network.frozen:
        options["features"] = (features[pair.source.name], features[pair.target.name])
    else:
        options["backbone"] = plan.network.backbone[0]
    # A worker that was started before may be in another folder than this process is by now.
    folder = (run / training.place).absolute()
    source, target = domains.images[pair.source.name], domains.images[pair.target.name]
    return Job(training, folder, source, target, options, threads_of(plan))


def _one_by_one(
    jobs: list[Job], workers: int, told: Reporting
) -> Generator[tuple[Training, str | None]]:
    """Each tells of its own progress, and has processes that read images for it."""
    for number, job in enumerate(jobs, 1):
        if told.line is not None:
            told.line(f"training {number} of {len(jobs)}: {job.training.title}")
        reading = 0 if workers == 1 else workers
        yield job.training, job.done(workers=reading, reporting=told)


def _at_once(
    jobs: list[Job], workers: int, told: Reporting
) -> Generator[tuple[Training, str | None]]:
    """So many at a time; what is told is how many are done."""
    with showing("training", len(jobs), shown=told.shown, line=told.line, unit="trainings") as step:
        if workers == 1 or len(jobs) < 2:
            for job in jobs:
                yield _quietly(job)
                step(1, kept=False)
            return
        with closing(in_processes(_quietly, [(job,) for job in jobs], workers)) as results:
            for found in results:
                step(1, kept=False)
                yield found


def _quietly(job: Job) -> tuple[Training, str | None]:
    return job.training, job.done(reporting=Reporting(shown=False))
