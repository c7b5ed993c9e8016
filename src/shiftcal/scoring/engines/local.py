"""This machine."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Literal

from shiftcal._checks import check_choice, check_count
from shiftcal.errors import InputWarning
from shiftcal.numerics._threads import thread_count
from shiftcal.scoring.engines.base import Engine
from shiftcal.scoring.shard import Shard, ShardResult
from shiftcal.scoring.work import Work


class LocalEngine(Engine):
    """Workers on this machine.

    One worker is this process itself: images are prepared while the model runs, and both use all
    processors. More of them share the processors out, and pay where a model cannot use several.

    Args:
        workers: How many; no more are started than there are shards to be done.
        kind: What they are if there are several. ``"processes"`` suit every model; one that is
            killed, by the system for want of memory or otherwise, is replaced. ``"threads"``
            start sooner and suit models that let go of the interpreter's lock.
    """

    def __init__(
        self, *, workers: int = 1, kind: Literal["processes", "threads"] = "processes"
    ) -> None:
        self.workers = check_count(workers, name="workers")
        self.kind = check_choice(kind, ("processes", "threads"), name="kind")

    def map_shards(self, work: Work, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results as they come, in the order of the shards if there is one worker."""
        if self.workers == 1:
            return work(shards)
        from shiftcal.scoring.engines._crew import results_of
        from shiftcal.scoring.engines._executors import Processes, Threads

        processors = os.cpu_count() or 1
        if self.workers > processors:
            warnings.warn(
                f"workers should be at most {processors}, the number of processors; got "
                f"{self.workers}. Each takes memory, and they share the same processors.",
                InputWarning,
                stacklevel=2,
            )
        crew = Processes if self.kind == "processes" else Threads
        threads = max(1, thread_count() // self.workers)
        return results_of(lambda: crew(work, size=self.workers, threads=threads), shards)
