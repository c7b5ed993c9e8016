"""From trained networks to records: whatever was evaluated before is not evaluated again."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from shiftcal.errors import InputError
from shiftcal.scoring.one_blas_thread import one_blas_thread
from shiftcal.scoring.progress import showing
from shiftcal.scoring.run import Reporting
from shiftcal.studies.adapting.cells import cells_of, record_of
from shiftcal.studies.adapting.kept_facts import keep_facts, read_facts
from shiftcal.studies.adapting.outputs import Outputs, digests_of
from shiftcal.studies.adapting.plan import AdaptationPlan
from shiftcal.studies.adapting.results import Facts
from shiftcal.studies.adapting.trainings import Training, trainings_of
from shiftcal.studies.record import Record
from shiftcal.studies.stages.cells import Cell
from shiftcal.studies.stages.kept import keep_outcomes, read_outcomes
from shiftcal.studies.stages.outcome import Outcome, fitted, judged
from shiftcal.studies.stages.processes import in_processes

_Found: TypeAlias = tuple["Work", dict[str, Outcome], Facts]


@dataclass(frozen=True)
class Work:
    """The evaluations of one network.

    Attributes:
        training: The network.
        cells: What is to be evaluated on it; may be nothing but its facts.
        known: By what its facts are known.
    """

    training: Training
    cells: tuple[Cell, ...]
    known: str


def evaluate(
    plan: AdaptationPlan,
    trainings: Sequence[Training],
    run: Path,
    *,
    workers: int = 1,
    reporting: Reporting | None = None,
) -> tuple[list[Record], list[Facts], int]:
    """Evaluate every method on every network.

    Outcomes are kept in the folder of the run as they come. The records do not depend on how many
    workers there are, nor on what was done before.

    Args:
        plan: The plan.
        trainings: Those that are finished, in the order of the records.
        run: Folder of the run.
        workers: Processes.
        reporting: How progress is told.

    Returns:
        The records, the facts of every network, and how many evaluations were made by this call.

    Raises:
        FileError: If outputs of a network are not there, or damaged.
    """
    told = reporting or Reporting()
    works = [_work(plan, training, run) for training in trainings]
    known, facts = read_outcomes(run), read_facts(run)
    missing = _left_of(works, known, facts)
    count = sum(len(work.cells) for work in missing)
    with (
        one_blas_thread(),
        showing("evaluating", count, shown=told.shown, line=told.line, unit="evaluations") as step,
        closing(_run(missing, run, plan.bins, workers)) as results,
    ):
        for work, outcomes, found in results:
            pair, trainer = work.training.pair, work.training.trainer
            if outcomes:
                keep_outcomes(run, work.training.seed, f"{pair.name}.{trainer.key}", outcomes)
            known |= outcomes
            facts[work.known] = found
            step(len(outcomes), kept=False)
    keep_facts(run, {work.known: facts[work.known] for work in works})
    records = [
        record_of(cell, work.training, known[cell.key]) for work in works for cell in work.cells
    ]
    return records, [facts[work.known] for work in works], count


def works_left(plan: AdaptationPlan, trainings: Sequence[Training], run: Path) -> list[Work]:
    """What is not evaluated yet of trainings that are finished."""
    works = [_work(plan, training, run) for training in trainings]
    return _left_of(works, read_outcomes(run), read_facts(run))


def _left_of(
    works: Sequence[Work], known: dict[str, Outcome], facts: dict[str, Facts]
) -> list[Work]:
    left = [
        replace(work, cells=tuple(cell for cell in work.cells if cell.key not in known))
        for work in works
    ]
    return [work for work in left if work.cells or work.known not in facts]


def _work(plan: AdaptationPlan, training: Training, run: Path) -> Work:
    digests = digests_of(run, training)
    cells = cells_of(plan, training, digests)
    return Work(training, tuple(cells), f"{training.place} {'-'.join(digests)}")


def _run(works: list[Work], run: Path, bins: int, workers: int) -> Generator[_Found]:
    if workers == 1 or len(works) < 2:
        for work in works:
            yield outcomes_of(work, run, bins)
        return
    where = run.absolute()  # a worker that was started before may be in another folder
    yield from in_processes(outcomes_of, [(work, where, bins) for work in works], workers)


def outcomes_of(work: Work, run: Path, bins: int) -> _Found:
    """The outcomes of a network by key, and its facts."""
    with one_blas_thread():
        outputs = Outputs.open(run, work.training)
        outcomes = {
            cell.key: judged(fitted(cell.variant, outputs.bank, outputs), outputs.target, bins=bins)
            for cell in work.cells
        }
    return work, outcomes, outputs.facts(work.training)


def recomputed(plan: AdaptationPlan, run: Path, record: Record) -> Record:
    """A record computed again from the stored outputs of its network.

    Raises:
        InputError: If no such evaluation is in the plan.
    """
    for training in trainings_of(plan):
        told = (training.trainer.key, training.pair.name, training.seed)
        if told != (record.panel, record.target, record.split):
            continue
        work = _work(plan, training, run)
        cells = tuple(cell for cell in work.cells if cell.variant.key == record.variant)
        for cell in cells:
            _, outcomes, _ = outcomes_of(replace(work, cells=(cell,)), run, plan.bins)
            return replace(record, **vars(outcomes[cell.key]))
    raise InputError(
        f"the plan of {run} has no evaluation of {record.label} on {record.target} with "
        f"{record.panel} and seed {record.split}."
    )
