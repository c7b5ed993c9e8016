"""Progress of long work: a bar on a terminal, a line of text now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

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


class Step(Protocol):
    """Called with the number of images that are finished."""

    def __call__(self, images: int, *, kept: bool) -> None:
        """So many more images are finished; ``kept`` if an earlier run did them."""


@contextmanager
def showing(
    doing: str,
    total: int,
    *,
    shown: bool | None = None,
    line: Callable[[str], None] | None = None,
    unit: str = "images",
) -> Iterator[Step]:
    """A function to be called with finished images.

    Args:
        doing: Stands before the numbers.
        total: Images in all.
        shown: As for :class:`Reporting`.
        line: As for :class:`Reporting`.
        unit: What is counted.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    if shown is None:
        shown = sys.stderr is not None and sys.stderr.isatty()
    # Rich needs widgets in a notebook; a line that is overwritten does not.
    notebook = True if "ipykernel" in sys.modules else None
    console = Console(stderr=True, force_jupyter=False, force_terminal=notebook)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}", markup=False),
    )
    begun = last = time.monotonic()
    done = computed = 0
    guard = threading.Lock()  # finished images are counted by the thread that reads, too
    with Progress(*columns, console=console, disable=not shown) as progress:
        task = progress.add_task(doing, total=total, pace="")

        def step(images: int, *, kept: bool) -> None:
            nonlocal done, computed, last
            with guard:
                done += images
                computed += 0 if kept else images
            now = time.monotonic()
            rate = computed / max(now - begun, 1e-9)
            pace = ""
            if rate:
                left = str(timedelta(seconds=round((total - done) / rate))).removeprefix("0:")
                pace = f"{rate:,.{0 if rate >= 10 else 1}f} {unit}/s, {left} left"
            progress.update(task, completed=done, pace=pace)
            if line is not None and not shown and now - last >= _BETWEEN:
                last = now
                counted = f"{done:,} of {total:,} {unit}"
                line(f"{doing}: {', '.join(filter(None, (counted, pace)))}")

        yield step
