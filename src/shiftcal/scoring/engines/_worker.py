"""A worker: it holds the work, is given one shard after the other, and gives their results."""

from __future__ import annotations

import pickle
import queue
from collections.abc import Iterator
from contextlib import suppress

from shiftcal.errors import ShiftcalError
from shiftcal.scoring.ahead import is_unwanted
from shiftcal.scoring.shard import Shard, ShardResult
from shiftcal.scoring.work import Work

# Seconds after which a thread that waits for a shard looks whether one will come.
_LOOK = 0.1


class Worker:
    """Work that goes on from shard to shard, so that images it has read are kept for the next.

    Args:
        work: Its own copy: how many threads the model uses is set here.
        threads: How many it may use.
    """

    def __init__(self, work: Work, *, threads: int) -> None:
        work.model.use_threads(threads)
        self._given: queue.SimpleQueue[Shard | None] = queue.SimpleQueue()
        self._results = work.with_threads(threads)(self._coming())

    def do(self, shard: Shard) -> ShardResult:
        """What the model gives for a shard. After an error the worker is of no more use."""
        self._given.put(shard)
        try:
            return next(self._results)
        except (Exception, SystemExit) as error:  # no exit of this process, which others need
            raise portable(error) from error

    def close(self) -> None:
        """End the thread that reads images."""
        self._given.put(None)
        next(self._results, None)

    def _coming(self) -> Iterator[Shard]:
        """The shards that are given, asked for by the thread that reads their images."""
        while not is_unwanted():
            with suppress(queue.Empty):
                shard = self._given.get(timeout=_LOOK)
                if shard is None:
                    return
                yield shard


def portable(error: BaseException) -> Exception:
    """The error, or one that says the same if it cannot be sent to another process."""
    try:
        same = pickle.loads(pickle.dumps(error))
    except Exception:  # classes with an __init__ of their own raise anything here
        same = None
    kept = type(same) is type(error) and str(same) == str(error)
    if kept and isinstance(error, Exception):
        return error
    return ShiftcalError(f"{type(error).__name__} in a worker: {error}")
