"""What is left of a job, and how fast it will go."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import cycle

import numpy as np

from shiftcal.scoring.job import Job
from shiftcal.scoring.shard import Condition, Shard
from shiftcal.scoring.store import Store

# Conditions that are tried at most: each may have kernels to be loaded first.
_CONDITIONS = 8
# Batches that are measured at least.
_LEAST = 3
_GOLDEN = (5**0.5 - 1) / 2


def pending(job: Job, store: Store) -> int:
    """Images of a job that are in no finished shard, over all conditions.

    No result is read; the images are, once, since shards are known by their content.
    """
    return sum(len(shard) for shard in job.shards() if not store.has(shard.key))


def measured_rate(job: Job, *, seconds: float = 2.0) -> float:
    """Images a second, from reading to checked outputs, by one worker in this process.

    The first batches of shards are scored under conditions from all over the job, as the job would
    do it: the next is prepared while the model runs. Kernels are loaded, and one batch is scored,
    before the clock runs. Nothing is kept.

    Args:
        job: What will be done.
        seconds: How long is measured at least, if three batches take no longer.

    Raises:
        InputError: If the model fails on a batch.
    """
    work = replace(job.work, tell=None)
    conditions = _spread(job.conditions)
    _load_kernels(job, conditions)
    images = batches = 0
    # Closing it ends the thread that prepares batches.
    with closing(work(_first_batches(job, conditions))) as results:
        next(results)
        began = time.perf_counter()
        while batches < _LEAST or time.perf_counter() - began < seconds:
            result = next(results)
            images += len(result.rows) + len(result.bad)
            batches += 1
        return images / (time.perf_counter() - began)


def _spread(conditions: tuple[Condition, ...]) -> list[Condition]:
    """Some of them at even distances, in an order whose every beginning is spread out, too."""
    count = min(len(conditions), _CONDITIONS)
    places = np.linspace(0, len(conditions) - 1, count).round().astype(int)
    order = sorted(range(count), key=lambda i: i * _GOLDEN % 1)
    return [conditions[places[i]] for i in order]


def _first_batches(job: Job, conditions: list[Condition]) -> Iterator[Shard]:
    """First batches of shards without end; the same images under all conditions come together."""
    size = min(job.work.batch_size, job.shard_size)
    for start in cycle(range(*job.span, job.shard_size)):
        for condition in conditions:
            yield Shard("measured", condition, start, min(start + size, job.span[1]))


def _load_kernels(job: Job, conditions: list[Condition]) -> None:
    """Corrupt one image in every way: the first call loads a kernel, or even compiles it."""
    work, start = job.work, job.span[0]
    batch = work.images.read(np.array([start]), framing=work.model.preprocessing.framing)
    if len(batch.indices):
        for condition in conditions:
            work._corrupted(batch, Shard("loaded", condition, start, start + 1))
