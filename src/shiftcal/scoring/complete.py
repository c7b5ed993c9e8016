"""Doing whatever is left of a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from shiftcal.scoring.engines.base import Engine
from shiftcal.scoring.job import Job
from shiftcal.scoring.shard import Shard
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
) -> None:
    """Have every shard of a job in the store.

    Shards that are there are left alone; those that another process is at are waited for, and
    done here if it gives up. Every finished shard is kept at once.

    Args:
        job: What is to be done.
        store: Where results are kept.
        engine: Where the work is done.
        step: Told about every shard.
        first: Called with the number of classes as soon as it is known, to refuse early.

    Raises:
        InputError: If the model fails; what was done until then is kept.
        FileError: If a result cannot be kept.
    """
    left: Iterable[Shard] = job.shards()
    while True:
        elsewhere: list[Shard] = []
        for result in engine.map_shards(job.work, _claimed(left, store, step, elsewhere)):
            store.put(result)
            store.release(result.key)
            step(len(result.rows) + len(result.bad), kept=False)
            if first is not None and result.logits.shape[1]:
                first(result.logits.shape[1])
        if not elsewhere:
            return
        time.sleep(_LOOK)
        left = elsewhere


def _claimed(
    shards: Iterable[Shard], store: Store, step: Step, elsewhere: list[Shard]
) -> Iterator[Shard]:
    """Those that are neither there nor worked on by others; each is ours once it is given out."""
    for shard in shards:
        if store.has(shard.key):
            step(len(shard), kept=True)
        elif not store.claim(shard.key):
            elsewhere.append(shard)
        elif store.has(shard.key):  # finished between the two looks
            store.release(shard.key)
            step(len(shard), kept=True)
        else:
            yield shard
