"""How far a training is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from shiftcal.scoring.progress import Pace
from shiftcal.scoring.run import Reporting

# Seconds between two lines, and between two changes of the bar.
_LINES, _BAR = 15.0, 0.2
# Columns that the bar has of a terminal's 80, so that all the words have their place.
_WIDTH = 8

Show = Callable[[Sequence[float], str], None]


class Tell(Protocol):
    """Told how far the training is."""

    def __call__(self, steps: int, losses: Sequence[float], images: int) -> None:
        """So many more iterations are done.

        Args:
            steps: How many.
            losses: Of the last: classification, transfer, total.
            images: In each.
        """


@contextmanager
def telling(
    first: int, last: int, reporting: Reporting, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[Tell]:
    """Give a function that is told about finished iterations.

    Args:
        first: Iterations done before.
        last: Iterations in all.
        reporting: How progress is told.
        clock: Gives seconds.
    """
    pace = Pace(last, clock=clock, unit="steps")
    pace.add(first, kept=True)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if terminal if reporting.shown is None else reporting.shown:
        with _bar(pace) as show:
            yield _now_and_then(pace, show, between=_BAR, clock=clock)
    else:
        show = _lines(pace, reporting.line)
        yield _now_and_then(pace, show, between=_LINES, clock=clock)


def _now_and_then(pace: Pace, show: Show, *, between: float, clock: Callable[[], float]) -> Tell:
    shown = clock()

    def tell(steps: int, losses: Sequence[float], images: int) -> None:
        nonlocal shown
        pace.add(steps, kept=False)
        now = clock()
        if now - shown >= between:
            shown = now
            show(losses, _speed(pace, images))

    return tell


def _speed(pace: Pace, images: int) -> str:
    left = "" if pace.left is None else f", {str(pace).rpartition(', ')[2]}"
    return f"{pace.rate * images:,.0f} images/s{left}"


@contextmanager
def _bar(pace: Pace) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(_WIDTH),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=pace.total, completed=pace.done, words="")

        def show(losses: Sequence[float], speed: str) -> None:
            words = f"loss {losses[0]:.3f} + {losses[1]:.3f}, {speed}"
            progress.update(task, completed=pace.done, words=words)

        yield show
        progress.update(task, completed=pace.done)


def _lines(pace: Pace, line: Callable[[str], None] | None) -> Show:
    def show(losses: Sequence[float], speed: str) -> None:
        if line is not None:
            classification, transfer, total = losses
            line(
                f"training: step {pace.done:,} of {pace.total:,}, loss {total:.3g} (classification "
                f"{classification:.3g}, transfer {transfer:.3g}), {speed}"
            )

    return show
