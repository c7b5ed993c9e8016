"""Workers of a Ray cluster: one long-lived actor each, which holds the model."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.errors import InputError, InputWarning, ShiftcalError
from shiftcal.scoring.engines._crew import Crew, WorkerDied
from shiftcal.scoring.engines._parcel import packed
from shiftcal.scoring.engines._search_path import extend_search_path, search_path
from shiftcal.scoring.engines._worker import Worker, portable
from shiftcal.scoring.shard import Shard, ShardResult
from shiftcal.scoring.work import Work

# Seconds without any worker after which that is said.
PATIENCE = 60.0


class Actors(Crew):
    """Actors on whatever machines the cluster finds for them.

    Args:
        work: What is done; put into the store of the cluster once.
        size: How many actors.
        cpus: Processors each is given.
        gpus: Graphics processors each is given, or a part of one.
    """

    def __init__(self, work: Work, *, size: int, cpus: float, gpus: float) -> None:
        self.ray = require("ray", extra="ray", needed_by="the Ray engine")
        self.died: tuple[type[Exception], ...] = (
            self.ray.exceptions.RayActorError,
            self.ray.exceptions.WorkerCrashedError,
            self.ray.exceptions.OutOfMemoryError,
        )
        self.size = size
        self.threads = max(1, int(cpus))
        self.paths = search_path()
        # Bytes as an array: actors of one machine read them from its memory without a copy.
        self.sent = self.ray.put(np.frombuffer(packed(work), np.uint8))
        # A worker that is gone is replaced here, where it is known what it was at.
        settings = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
        self.actor = self.ray.remote(**settings, scheduling_strategy="SPREAD")(Actor)
        self.actors: dict[int, Any] = {}
        self.any_ready = False

    def begin(self, place: int) -> Any:
        """Ask for an actor; done when the cluster had room for it and it has loaded the work."""
        self._end(place)
        self.actors[place] = self.actor.remote(self.sent, self.threads, self.paths)
        return self.actors[place].load.remote()

    def give(self, place: int, shard: Shard) -> Any:
        """The actor keeps the work; a shard is all that is sent."""
        return self.actors[place].do.remote(shard)

    def wait(self, handles: Sequence[Any]) -> Any:
        """One that is done; warns if the cluster has no room for any worker."""
        patience = None if self.any_ready else PATIENCE
        done, _ = self.ray.wait(list(handles), num_returns=1, timeout=patience)
        if not done:
            warnings.warn(
                f"no worker has been started for {PATIENCE:.0f} s: the cluster has "
                f"{_told(self.ray.available_resources())} free. Waiting on; end other work there, "
                "or ask for fewer cpus_per_worker or gpus_per_worker.",
                InputWarning,
                stacklevel=2,
            )
            done, _ = self.ray.wait(list(handles), num_returns=1)
        self.any_ready = True
        return done[0]

    def result(self, handle: Any) -> Any:
        """What came of it, in memory of this process."""
        try:
            result = self.ray.get(handle)
        except self.ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, Exception) else error) from None
        except self.died as error:
            raise WorkerDied(" ".join(str(error).split())) from error
        return None if result is None else _owned(result)

    def stop(self) -> None:
        """Kill the actors, which have nothing to lose; the cluster goes on."""
        for place in list(self.actors):
            self._end(place)

    def _end(self, place: int) -> None:
        actor = self.actors.pop(place, None)
        if actor is not None:
            self.ray.kill(actor, no_restart=True)


class Actor:
    """A worker in a process of the cluster.

    Args:
        sent: The pickled work, ``(bytes,)``.
        threads: How many it may use.
        paths: Where the process that has asked for it looks for modules.
    """

    def __init__(self, sent: NDArray[np.uint8], threads: int, paths: Sequence[str]) -> None:
        self.sent: NDArray[np.uint8] | None = sent
        self.threads = threads
        extend_search_path(paths)

    def load(self) -> None:
        """Make the work of what was sent."""
        assert self.sent is not None
        try:
            work: Work = pickle.loads(self.sent.data)
        except ShiftcalError as error:
            raise portable(error) from None
        except (
            Exception,
            SystemExit,
        ) as error:  # whatever the constructors of the user's classes raise
            # Without its cause, which this error may be unable to take along.
            raise InputError(
                "the model and the images must be such that a worker can load them, from files "
                f"and modules that its machine has too; that failed with {type(error).__name__}: "
                f"{error}."
            ) from None
        self.sent = None
        self.worker = Worker(work, threads=self.threads)

    def do(self, shard: Shard) -> ShardResult:
        """What the model gives for a shard."""
        return self.worker.do(shard)


def _owned(result: ShardResult) -> ShardResult:
    """The same with arrays of its own: those that come are in the store, and keep it full."""
    features = None if result.features is None else result.features.copy()
    return replace(result, rows=result.rows.copy(), logits=result.logits.copy(), features=features)


def _told(resources: dict[str, float]) -> str:
    return f"{resources.get('CPU', 0):g} CPUs and {resources.get('GPU', 0):g} GPUs"
