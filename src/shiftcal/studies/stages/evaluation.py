"""From stored scores to records: whatever was evaluated before is not evaluated again."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

from shiftcal.scoring.one_blas_thread import one_blas_thread
from shiftcal.scoring.progress import showing
from shiftcal.scoring.run import Reporting
from shiftcal.studies.archive import Archive, Split
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.record import Record
from shiftcal.studies.stages.cells import Cell, cells_of
from shiftcal.studies.stages.kept import keep_outcomes, read_outcomes
from shiftcal.studies.stages.outcome import (
    Fitted,
    Outcome,
    bank_of,
    fitted,
    judged,
    rows_of,
)
from shiftcal.studies.stages.processes import in_processes
from shiftcal.studies.variant import Ladder, Target, Variant

# Targets that a worker takes at a time: what is lost by Ctrl-C, and what methods are fitted for.
_TARGETS = 12
# Seed of a split; of each target, outcomes by key.
_Found: TypeAlias = tuple[int, list[tuple[str, dict[str, Outcome]]]]


def evaluate(
    plan: Plan,
    variants: Sequence[Variant],
    archive: Archive,
    *,
    workers: int = 1,
    reporting: Reporting | None = None,
) -> tuple[list[Record], int]:
    """Evaluate every variant on every target in every split.

    Outcomes are kept in the folder of the archive, target by target, as they come. The records do
    not depend on how many workers there are, nor on what was done before.

    Args:
        plan: The plan.
        variants: What is compared.
        archive: The scores.
        workers: Processes.
        reporting: How progress is told.

    Returns:
        The records in the order of the plan, and how many were evaluated by this call.
    """
    told = reporting or Reporting()
    cells = list(cells_of(plan, variants, archive))
    known = read_outcomes(archive.folder)
    missing = {cell.key: cell for cell in cells if cell.key not in known}
    tasks = tasks_of(list(missing.values()), plan, workers)
    with (
        one_blas_thread(),
        showing(
            "evaluating", len(missing), shown=told.shown, line=told.line, unit="evaluations"
        ) as step,
        closing(_run(tasks, archive, workers)) as results,
    ):
        for split, found in results:
            for target, outcomes in found:
                keep_outcomes(archive.folder, split, target, outcomes)
                known |= outcomes
            step(sum(len(outcomes) for _, outcomes in found), kept=False)
    records = [
        cell.record(known[cell.key], archive.entries[cell.target.name].file) for cell in cells
    ]
    return records, len(missing)


@dataclass(frozen=True)
class Task:
    """What a worker does at a time: some targets of a split.

    Attributes:
        split: Its seed.
        images: To calibrate on.
        bins: Of the ECE.
        cells: Those of the targets.
    """

    split: int
    images: int
    bins: int
    cells: tuple[Cell, ...]


def tasks_of(cells: list[Cell], plan: Plan, workers: int) -> list[Task]:
    """Cells cut by split, and within a split by target so that workers have equal shares."""
    made = []
    for split in plan.seeds:
        own = [cell for cell in cells if cell.split == split]
        names = list(dict.fromkeys(cell.target.name for cell in own))
        parts = max(workers, -(-len(names) // _TARGETS))
        for part in range(parts):
            wanted = set(names[part::parts])
            chosen = tuple(cell for cell in own if cell.target.name in wanted)
            if chosen:
                made.append(Task(split, plan.calibration.images, plan.bins, chosen))
    return made


def in_one_process(tasks: Sequence[Task], workers: int) -> bool:
    """Whether so few tasks, or workers, are done here."""
    return workers == 1 or len(tasks) < 2


def _run(tasks: list[Task], archive: Archive, workers: int) -> Generator[_Found]:
    """Outcomes as they come: of a target at a time in this process, else of a task."""
    if in_one_process(tasks, workers):
        for task in tasks:
            for each in outcomes_of(task, archive):
                yield task.split, [each]
        return
    yield from in_processes(_all_of, [(task, archive) for task in tasks], workers)


def _all_of(task: Task, archive: Archive) -> _Found:
    with one_blas_thread():
        return task.split, list(outcomes_of(task, archive))


def outcomes_of(task: Task, archive: Archive) -> Iterator[tuple[str, dict[str, Outcome]]]:
    """The outcomes of a task, target by target."""
    split = archive.split(task.split, task.images)
    made = _fitted(task, archive, split)
    by_target: dict[Target, list[Cell]] = {}
    for cell in task.cells:
        by_target.setdefault(cell.target, []).append(cell)
    for target, cells in by_target.items():
        rows = rows_of(archive.scores(target.name), target, split)
        outcomes = {}
        for cell in cells:
            method = made[id(cell.variant)]
            outcomes[cell.key] = judged(method, rows, bins=task.bins, seed=cell.seed)
        yield target.name, outcomes


def _fitted(task: Task, archive: Archive, split: Split) -> dict[int, Fitted]:
    """Every variant of a task, fitted once; one bank at a time is in memory."""
    by_ladder: dict[Ladder, dict[int, Variant]] = {}
    for cell in task.cells:
        by_ladder.setdefault(cell.variant.ladder, {})[id(cell.variant)] = cell.variant
    made: dict[int, Fitted] = {}
    for ladder, variants in by_ladder.items():
        bank = bank_of(archive, ladder, split, seed=task.split)
        made |= {which: fitted(variant, bank, archive) for which, variant in variants.items()}
    return made
