"""Handing shards to workers that come, go and die."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from shiftcal.errors import ShiftcalError
from shiftcal.scoring.shard import Shard, ShardResult

# A shard that has ended so many workers would end the next one too.
MOST_DEATHS = 3


class WorkerDied(Exception):
    """A worker is gone, and what it was at is not done."""


class Crew(ABC):
    """Workers of an engine, each in a place of its own, ``0`` to ``size - 1``.

    What is asked of a worker is known by a handle: anything that can be the key of a dict.
    """

    size: int

    @abstractmethod
    def begin(self, place: int) -> Any:
        """Have a worker in this place, a new one if there was one; done when it is ready."""

    @abstractmethod
    def give(self, place: int, shard: Shard) -> Any:
        """Have the worker of this place do a shard."""

    @abstractmethod
    def wait(self, handles: Sequence[Any]) -> Any:
        """One of them that is done."""

    @abstractmethod
    def result(self, handle: Any) -> Any:
        """What came of it.

        Raises:
            WorkerDied: If the worker did not live to the end of it.
        """

    @abstractmethod
    def stop(self) -> None:
        """End all workers, whatever they are at."""


def results_of(crew: Callable[[], Crew], shards: Iterable[Shard]) -> Iterator[ShardResult]:
    """Results of all shards, each once, as they come; workers are started at the first shard.

    A worker is started when there is a shard for it, so that no more are than there are shards;
    after that a shard is taken when a worker is free for it. After an error no more are taken;
    those that are being done are finished and given, and then it is raised.
    """
    rest = iter(shards)
    first = next(rest, None)
    if first is None:
        return
    workers = crew()
    try:
        yield from _Dispatch(workers, first, rest).results()
    finally:
        workers.stop()


class _Dispatch:
    """Who is at what."""

    def __init__(self, crew: Crew, first: Shard, rest: Iterator[Shard]) -> None:
        self.crew = crew
        self.waiting = deque([first])
        self.rest: Iterator[Shard] | None = rest
        self.free: list[int] = []
        self.busy: dict[Any, tuple[int, Shard | None]] = {}  # no shard: it is getting ready
        self.deaths: Counter[str] = Counter()  # by the key of the shard, "" for getting ready
        self.failure: Exception | None = None

    def results(self) -> Iterator[ShardResult]:
        self._start()
        while self._more_to_come():
            result = self._next()
            self._hand_out()
            if result is not None:
                yield result
        if self.failure is not None:
            raise self.failure

    def _start(self) -> None:
        """Begin workers, and take a shard for each; whichever is ready first does the first."""
        for place in range(self.crew.size):
            if place > 0:
                shard = self._take_new()
                if shard is None:
                    return
                self.waiting.append(shard)
            self.busy[self.crew.begin(place)] = (place, None)

    def _more_to_come(self) -> bool:
        if any(shard is not None for _, shard in self.busy.values()):
            return True
        return self.failure is None and (bool(self.waiting) or self.rest is not None)

    def _next(self) -> ShardResult | None:
        """Wait for a worker; its result, unless it has become ready, has died or has failed."""
        done = self.crew.wait(list(self.busy))
        place, shard = self.busy.pop(done)
        try:
            result: ShardResult | None = self.crew.result(done)
        except WorkerDied as death:
            self._bury(place, shard, death)
            return None
        except Exception as error:  # the model's; the worker is given nothing more
            self.failure = self.failure or error
            return None
        if shard is None:
            self.deaths.pop("", None)
        self.free.append(place)
        return None if shard is None else result

    def _hand_out(self) -> None:
        while self.free and self.failure is None:
            shard = self._take()
            if shard is None:
                return
            place = self.free.pop()
            self.busy[self.crew.give(place, shard)] = (place, shard)

    def _take(self) -> Shard | None:
        return self.waiting.popleft() if self.waiting else self._take_new()

    def _take_new(self) -> Shard | None:
        try:
            shard = None if self.rest is None else next(self.rest, None)
        except Exception as error:  # what is done already is given first
            self.failure = error
            return None
        if shard is None:
            self.rest = None
        return shard

    def _bury(self, place: int, shard: Shard | None, death: WorkerDied) -> None:
        key = "" if shard is None else shard.key
        self.deaths[key] += 1
        if self.deaths[key] >= MOST_DEATHS:
            self.failure = self.failure or _too_many(shard, death)
            return
        if shard is not None:
            self.waiting.append(shard)
        if self.failure is None:
            self.busy[self.crew.begin(place)] = (place, None)


def _too_many(shard: Shard | None, death: WorkerDied) -> ShiftcalError:
    at = "loading the model and the images"
    if shard is not None:
        at = f"images {shard.start} to {shard.stop - 1} ({shard.condition.name})"
    return ShiftcalError(
        f"{MOST_DEATHS} workers, one after the other, died at {at}. The likely cause is memory: "
        f"take fewer workers, or a smaller batch size. The last one: {death}"
    )
