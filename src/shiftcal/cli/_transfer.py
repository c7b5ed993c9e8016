"""How far a download is: a bar on a terminal, otherwise a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shiftcal.cli._streams import complain, complain_at_length

if TYPE_CHECKING:
    from rich.progress import TaskID

# Seconds between two lines of one file.
_NOW_AND_THEN = 10.0


class Lines:
    """Writes a line when a file is begun, when it is done, and now and then between.

    Args:
        clock: Gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.doing = ""
        self.began = self.last = self.first = 0.0

    def moved(self, doing: str, done: int, total: int | None) -> None:
        """So many bytes of so many are done of this."""
        now = self.clock()
        if doing != self.doing:
            self.doing, self.began, self.last, self.first = doing, now, now, done
        elif done != total and now - self.last < _NOW_AND_THEN:
            return
        self.last = now
        rate = (done - self.first) / (now - self.began) if now > self.began else 0.0
        complain_at_length(f"{doing}: {_so_far(done, total)}{_pace(rate, done, total)}\n")

    def note(self, text: str) -> None:
        """Something happened that need not stop anything."""
        complain("note", text)


class Bars:
    """Shows one bar a file, with rate and time left.

    Args:
        progress: A display of rich's that has been started.
    """

    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.tasks: dict[str, TaskID] = {}

    def moved(self, doing: str, done: int, total: int | None) -> None:
        """So many bytes of so many are done of this."""
        from rich.markup import escape

        if doing not in self.tasks:
            self.tasks[doing] = self.progress.add_task(escape(doing), total=total)
        self.progress.update(self.tasks[doing], completed=done, total=total)

    def note(self, text: str) -> None:
        """Something happened that need not stop anything."""
        complain("note", text)


@contextmanager
def transfer() -> Iterator[Lines | Bars]:
    """What is to be told of the progress of downloads, for this kind of stderr."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        "{task.description}",
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield Bars(progress)


def in_bytes(n: float) -> str:
    """A number of bytes as people read it, in powers of ten."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n:.0f} bytes"


def _so_far(done: int, total: int | None) -> str:
    if total is None:
        return in_bytes(done)
    return f"{in_bytes(done)} of {in_bytes(total)} ({100 * done // max(total, 1)} %)"


def _pace(rate: float, done: int, total: int | None) -> str:
    if rate <= 0:
        return ""
    left = "" if total is None or done >= total else f", {(total - done) / rate:.0f} s left"
    return f", {in_bytes(rate)}/s{left}"
