"""Doing the next thing while this one is used."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


def ahead(items: Iterable[T], *, depth: int = 2) -> Iterator[T]:
    """The same items in the same order, made by another thread, at most ``depth`` in advance.

    What the making raises is raised here, after the items before it. When this iterator is
    closed, by Ctrl-C or otherwise, the thread ends after the item it is at, and is waited for.
    """
    maker = _Maker(items, depth)
    maker.start()
    try:
        yield from maker.made()
    finally:
        maker.end()


def is_unwanted() -> bool:
    """Whether the thread that asks makes items which nobody waits for any more.

    For items that themselves wait for something: closing the iterator waits for them in turn.
    """
    return getattr(threading.current_thread(), "unwanted", False)


@dataclass(frozen=True)
class _Last:
    """What comes after all items: the end, or an error."""

    error: BaseException | None = None


class _Maker(threading.Thread, Generic[T]):
    """The thread that makes the items."""

    def __init__(self, items: Iterable[T], depth: int) -> None:
        super().__init__(name="shiftcal-ahead", daemon=True)
        self._items = items
        # What is in the queue is bounded by these: one is taken before an item is begun. A
        # semaphore would do, but Ctrl-C inside its release would leave its lock taken for good;
        # putting into this kind of queue cannot be interrupted.
        self._places: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(depth):
            self._places.put(None)
        self._queue: queue.SimpleQueue[T | _Last] = queue.SimpleQueue()
        self.unwanted = False

    def run(self) -> None:
        """Make one item after the other, as long as there is a place for it."""
        try:
            items = iter(self._items)
            while self._may_go_on():
                self._queue.put(next(items))
        except StopIteration:
            self._queue.put(_Last())
        except BaseException as error:  # raised again where the items are used
            self._queue.put(_Last(error))

    def made(self) -> Iterator[T]:
        """The items, each when it is there."""
        while not isinstance(item := self._queue.get(), _Last):
            self._places.put(None)
            yield item
        if item.error is not None:
            raise item.error

    def end(self) -> None:
        """Begin no more items, and wait for the one that is being made."""
        self.unwanted = True
        self._places.put(None)
        self.join()

    def _may_go_on(self) -> bool:
        self._places.get()
        return not self.unwanted
