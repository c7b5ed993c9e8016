"""Progress of long work: a bar on a terminal, a line of text now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

T = TypeVar("T")
# Seconds between two lines of text.
_BETWEEN = 15.0


class _State:
    """Whether bars are wanted at all, and those that :func:`track` adds to."""

    wanted = True
    shown: Any = None


def want_bars(wanted: bool) -> None:
    """Switch all bars of this process off, or on again: they are shown on a terminal."""
    _State.wanted = wanted


@dataclass(frozen=True)
class Reporting:
    """How progress is reported.

    Attributes:
        shown: Whether a bar is shown; ``None``: if standard error is a terminal.
        line: Without a bar, called with the progress in words every 15 seconds at most.
    """

    shown: bool | None = None
    line: Callable[[str], None] | None = None


@contextmanager
def bar(doing: str, *, shown: bool | None = None, unit: str = "") -> Iterator[Callable[..., None]]:
    """A progress bar on standard error; gives a function of (done, total, pace).

    Args:
        doing: Stands before the bar.
        shown: Whether to show it; ``None``: if standard error is a terminal.
        unit: What is counted, for the rate.
    """
    if not _is_shown(shown):
        yield lambda *_: None
        return
    with _bars() as progress:
        task = progress.add_task(doing, total=None, count="", pace="")
        begun = time.monotonic()

        def update(done: int, total: int, pace: str | None = None) -> None:
            if pace is None and done:
                pace = _pace(done, total - done, time.monotonic() - begun, unit)
            count = f"{done:,}/{total:,}"
            progress.update(task, completed=done, total=total, count=count, pace=pace or "")

        yield update


@contextmanager
def tracking(doing: str, *, shown: bool | None = None) -> Iterator[None]:
    """Show a line for the whole of some work, and below it bars of what :func:`track` goes through.

    The lines vanish when the work is done.

    Args:
        doing: What is done.
        shown: As for :func:`bar`.
    """
    if not _is_shown(shown):
        yield
        return
    with _bars(transient=True) as progress:
        progress.add_task(doing, total=None, count="", pace="")
        before, _State.shown = _State.shown, progress
        try:
            yield
        finally:
            _State.shown = before


def track(items: Collection[T], doing: str) -> Iterator[T]:
    """The items, counted by a bar if a caller is :func:`tracking`, and by nothing else."""
    if (progress := _State.shown) is None:
        yield from items
        return
    task = progress.add_task(f"  {doing}", total=len(items), count=f"0/{len(items):,}", pace="")
    begun = time.monotonic()
    try:
        for done, item in enumerate(items, start=1):
            yield item
            pace = _pace(done, len(items) - done, time.monotonic() - begun)
            progress.update(task, completed=done, count=f"{done:,}/{len(items):,}", pace=pace)
    finally:
        progress.remove_task(task)


@contextmanager
def _bars(*, transient: bool = False) -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # Rich needs widgets in a notebook; a line that is overwritten does not.
    notebook = True if "ipykernel" in sys.modules else None
    console = Console(stderr=True, force_jupyter=False, force_terminal=notebook)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[count]}", markup=False, justify="right"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[pace]}", markup=False),
    )
    with Progress(*columns, console=console, transient=transient) as progress:
        yield progress


def _pace(done: float, left: float, seconds: float, unit: str = "") -> str:
    """``12 images/s, 0:35 left``."""
    rate = done / max(seconds, 1e-9)
    each = f"{rate:,.{0 if rate >= 10 else 1}f}{unit and ' '}{unit}"
    if unit == "bytes":
        from rich.filesize import decimal

        each = decimal(round(rate))
    return f"{each}/s, {_left(left / rate)}"


def _is_shown(shown: bool | None) -> bool:
    if not _State.wanted:
        return False
    return (sys.stderr is not None and sys.stderr.isatty()) if shown is None else shown


def _left(seconds: float) -> str:
    return f"{timedelta(seconds=round(seconds))} left".removeprefix("0:")


@contextmanager
def showing(
    doing: str,
    total: int,
    *,
    shown: bool | None = None,
    line: Callable[[str], None] | None = None,
    unit: str = "images",
) -> Iterator[Callable[..., None]]:
    """A function of the images that are finished, ``kept=True`` if an earlier run did them.

    Args:
        doing: Stands before the numbers.
        total: Images in all.
        shown: As for :class:`Reporting`.
        line: As for :class:`Reporting`.
        unit: What is counted.
    """
    begun = last = time.monotonic()
    done = computed = 0
    guard = threading.Lock()  # finished images are counted by the thread that reads, too
    with bar(doing, shown=shown) as update:
        update(0, total)

        def step(images: int, *, kept: bool) -> None:
            nonlocal done, computed, last
            with guard:
                done += images
                computed += 0 if kept else images
            now = time.monotonic()
            pace = _pace(computed, total - done, now - begun, unit) if computed else ""
            update(done, total, pace)
            if line is not None and not _is_shown(shown) and now - last >= _BETWEEN:
                last = now
                counted = f"{done:,} of {total:,} {unit}"
                line(f"{doing}: {', '.join(filter(None, (counted, pace)))}")

        yield step
