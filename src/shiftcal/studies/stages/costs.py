"""How long evaluations take, from what each variant takes."""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.stages.cells import Cell
from shiftcal.studies.stages.evaluation import Task, in_one_process, tasks_of
from shiftcal.studies.stages.rehearsal import Cost, Shape, costs_of

# What it takes until a worker has imported everything and loaded its kernels, in seconds.
_START = 4.0
# Bytes of scores that are read and checked in a second.
_READ = 1e9
# Numbers that are sorted to see how workers get on together, how often in a turn, and turns.
_SORTED, _SORTS, _TURNS = 300_000, 12, 4


def evaluation_seconds(
    plan: Plan, cells: Sequence[Cell], shape: Shape, *, own: Mapping[str, int], workers: int
) -> float:
    """What evaluations take: of every task reading, fitting, judging; a task at a time a worker.

    Args:
        plan: The plan.
        cells: What is to be evaluated.
        shape: Of the arrays.
        own: Rows of natural targets, by name.
        workers: Processes.
    """
    variants = list({id(cell.variant): cell.variant for cell in cells}.values())
    if not variants:
        return 0.0
    found = costs_of(variants, shape, bins=plan.bins)
    costs = {id(variant): cost for variant, cost in zip(variants, found, strict=True)}
    tasks = tasks_of(list(cells), plan, workers)
    each = [_task_seconds(task, costs, shape, own) for task in tasks]
    if in_one_process(tasks, workers):
        return sum(each)
    return crowding(workers) * (_START + _longest(each, workers))


def crowding(workers: int) -> float:
    """How much longer each of so many workers takes than one alone; at least 1.

    Some work is timed in one thread and in so many at once, in turns: processors that the machine
    shares with other programs, or with itself, do not do twice as much by two.
    """
    numbers = np.random.default_rng(0).normal(size=_SORTED)

    def work(_: int = 0) -> None:
        for _ in range(_SORTS):
            np.sort(numbers)  # lets go of the interpreter's lock

    alone = together = 0.0
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))  # starts the threads
        for _ in range(_TURNS):
            began = time.perf_counter()
            work()
            between = time.perf_counter()
            list(pool.map(work, range(workers)))
            alone += between - began
            together += time.perf_counter() - between
    return max(1.0, together / alone)


def _task_seconds(
    task: Task, costs: Mapping[int, Cost], shape: Shape, own: Mapping[str, int]
) -> float:
    variants = {id(cell.variant): cell.variant for cell in task.cells}
    names = {cell.target.name for cell in task.cells}
    names |= {name for variant in variants.values() for name in variant.ladder.sets}
    rows = sum(own.get(name, shape.calibration + shape.test) for name in names)
    seconds = 4 * rows * (shape.classes + shape.features) / _READ
    seconds += sum(costs[which].fit for which in variants)
    for cell in task.cells:
        cost = costs[id(cell.variant)]
        seconds += cost.fixed + cost.row * own.get(cell.target.name, shape.test)
    return seconds


def _longest(seconds: Sequence[float], workers: int) -> float:
    """When the last of the workers is done, each taking the next task when it has finished one."""
    ends = [0.0] * workers
    for each in seconds:
        heapq.heapreplace(ends, ends[0] + each)
    return max(ends)
