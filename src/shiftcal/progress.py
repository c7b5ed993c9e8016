"""Progress of long work: a bar on a terminal, a line of text now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

# Seconds between two lines of text.
_BETWEEN = 15.0


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
def bar(doing: str, *, shown: bool | None = None) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error; gives a function of (done, total, pace).

    Args:
        doing: Stands before the bar.
        shown: Whether to show it; ``None``: if standard error is a terminal.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    # Rich needs widgets in a notebook; a line that is overwritten does not.
    notebook = True if "ipykernel" in sys.modules else None
    console = Console(stderr=True, force_jupyter=False, force_terminal=notebook)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}", markup=False),
    )
    with Progress(*columns, console=console, disable=not _is_shown(shown)) as progress:
        task = progress.add_task(doing, total=None, pace="")
        begun = time.monotonic()

        def update(done: int, total: int, pace: str | None = None) -> None:
            if pace is None and done:
                pace = _left((time.monotonic() - begun) * (total - done) / done)
            progress.update(task, completed=done, total=total, pace=pace or "")

        yield update


def _is_shown(shown: bool | None) -> bool:
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
            rate = computed / max(now - begun, 1e-9)
            pace = ""
            if rate:
                left = _left((total - done) / rate)
                pace = f"{rate:,.{0 if rate >= 10 else 1}f} {unit}/s, {left}"
            update(done, total, pace)
            if line is not None and not _is_shown(shown) and now - last >= _BETWEEN:
                last = now
                counted = f"{done:,} of {total:,} {unit}"
                line(f"{doing}: {', '.join(filter(None, (counted, pace)))}")

        yield step
