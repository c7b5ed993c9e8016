"""How far the work is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shiftcal.scoring.complete import Step

# Seconds between two lines.
_BETWEEN = 15.0
# How much must be computed before the time left is told: this share of all, or what came within
# so many seconds after the first.
_SHARE, _WATCHED = 0.02, 10.0


class Pace:
    """Counts images and tells the rate; may be told from several threads.

    Args:
        total: Images in all.
        clock: Gives seconds.
        unit: What is counted, in words.
    """

    def __init__(
        self,
        total: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        unit: str = "images",
    ) -> None:
        self.total = total
        self.unit = unit
        self.done = 0
        self.computed = 0
        self._clock = clock
        self._begun = clock()
        self._first: float | None = None
        self._guard = threading.Lock()

    def add(self, images: int, *, kept: bool) -> None:
        """Count so many more; those that were kept do not count for the rate."""
        with self._guard:
            self.done += images
            self.computed += 0 if kept else images
            if self._first is None and not kept:
                self._first = self._clock()

    @property
    def rate(self) -> float:
        """Images computed in a second; 0 before the first."""
        passed = self._clock() - self._begun
        return self.computed / passed if passed > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to go; ``None`` while too little is computed to know."""
        rate = self.rate
        if self._first is None or not rate:
            return None
        to_do = self.total - self.done
        enough = self.computed >= _SHARE * (to_do + self.computed)
        watched = self._clock() - self._first >= _WATCHED
        return to_do / rate if enough or watched else None

    def __str__(self) -> str:
        told = f"{self.done:,} of {self.total:,} {self.unit}"
        left, rate = self.left, self.rate
        if left is None:
            return told
        return f"{told}, {rate:,.{0 if rate >= 10 else 1}f} {self.unit}/s, {_time(left)} left"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def showing(
    doing: str,
    total: int,
    *,
    shown: bool | None = None,
    line: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    unit: str = "images",
) -> Iterator[Step]:
    """Give a function that is told about finished images.

    Args:
        doing: What stands before the numbers.
        total: Images in all.
        shown: Whether a bar is shown; ``None`` is if standard error is a terminal.
        line: Where there is no bar: told the same in words, at most every 15 seconds.
        clock: Gives seconds.
        unit: What is counted, in words.
    """
    pace = Pace(total, clock=clock, unit=unit)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if terminal if shown is None else shown:
        with _bar(doing, pace) as step:
            yield step
    else:
        yield _lines(doing, pace, line, clock)


@contextmanager
def _bar(doing: str, pace: Pace) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}", markup=False),
    )
    console = Console(stderr=True)
    if console.is_jupyter:
        # Rich asks for widgets there; a line that is written anew needs none. No colours: what
        # stands behind the words is coloured already.
        console = Console(
            stderr=True, force_jupyter=False, force_terminal=True, no_color=True
        )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(doing, total=pace.total, pace="")

        def step(images: int, *, kept: bool) -> None:
            pace.add(images, kept=kept)
            words = str(pace).partition(f"{pace.unit}, ")[2]
            progress.update(task, completed=pace.done, pace=words)

        yield step


def _lines(
    doing: str, pace: Pace, line: Callable[[str], None] | None, clock: Callable[[], float]
) -> Step:
    last = clock()

    def step(images: int, *, kept: bool) -> None:
        nonlocal last
        pace.add(images, kept=kept)
        now = clock()
        if line is not None and now - last >= _BETWEEN:
            last = now
            line(f"{doing}: {pace}")

    return step
