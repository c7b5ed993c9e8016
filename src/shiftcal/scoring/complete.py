"""Doing whatever is left of a job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from shiftcal.scoring.engines.base import Engine
from shiftcal.scoring.job import Job
from shiftcal.scoring.shard import Shard, ShardResult
from shiftcal.scoring.store import Store

# Seconds between two looks at what another process is doing.
_LOOK = 0.2


class Step(Protocol):
    """Told how far the work is."""

    def __call__(self, images: int, *, kept: bool) -> None:
        """So many more images are done; ``kept`` if not by this run."""


def complete(
    job: Job,
    store: Store,
    engine: Engine,
    *,
    step: Step,
    first: Callable[[int], None] | None = None,
) -> int:
    """Have every shard of a job in the store.

    Shards that are there are left alone; those that another process is at are waited for, and
    done here if it gives up. Every finished shard is kept at once.

    Args:
        job: What is to be done.
        store: Where results are kept.
        engine: Where the work is done.
        step: Told about every shard, and about its batches where the engine lets them be known;
            from any thread, but one at a time.
        first: Called with the number of classes as soon as it is known, to refuse early.

    Returns:
        How many images were scored here; those that could not be read are not among them.

    Raises:
        InputError: If the model fails; what was done until then is kept.
        FileError: If a result cannot be kept.
    """
    left: Iterable[Shard] = job.shards()
    count = _Count(step)
    scored = 0
    work = replace(job.work, tell=count.so_far)
    while True:
        elsewhere: list[Shard] = []
        for result in engine.map_shards(work, _claimed(left, store, count, elsewhere)):
            store.put(result)
            store.release(result.key)
            count.finished(result)
            scored += len(result.rows)
            if first is not None and result.logits.shape[1]:
                first(result.logits.shape[1])
        if not elsewhere:
            return scored
        time.sleep(_LOOK)
        left = elsewhere


class _Count:
    """Tells every image once, though shards are told of batch by batch and again when finished.

    Args:
        step: Who is told.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._told: dict[str, int] = {}  # images of unfinished shards, by the key
        self._guard = threading.Lock()

    def so_far(self, key: str, images: int) -> None:
        """So many images of a shard are done; fewer than before if it was begun anew."""
        with self._guard:
            self._tell(images - self._told.get(key, 0))
            self._told[key] = max(images, self._told.get(key, 0))

    def finished(self, result: ShardResult) -> None:
        """All images of a shard are done."""
        with self._guard:
            self._tell(len(result.rows) + len(result.bad) - self._told.pop(result.key, 0))

    def found(self, shard: Shard) -> None:
        """A shard was there already."""
        with self._guard:
            self._step(len(shard), kept=True)

    def _tell(self, images: int) -> None:
        if images > 0:
            self._step(images, kept=False)


def _claimed(
    shards: Iterable[Shard], store: Store, count: _Count, elsewhere: list[Shard]
) -> Iterator[Shard]:
    """Those that are neither there nor worked on by others; each is ours once it is given out."""
    for shard in shards:
        if store.has(shard.key):
            count.found(shard)
        elif not store.claim(shard.key):
            elsewhere.append(shard)
        elif store.has(shard.key):  # finished between the two looks
            store.release(shard.key)
            count.found(shard)
        else:
            yield shard
