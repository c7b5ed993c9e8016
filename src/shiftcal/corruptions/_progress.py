"""A progress bar on the terminal, for work that takes minutes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(total: int, doing: str, *, shown: bool | None) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how much is done.

    Args:
        total: How much there is to do.
        doing: What stands before the bar.
        shown: Whether to show it; ``None`` is if standard error is a terminal.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield _say_nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done: progress.update(task, completed=done)


def _say_nothing(done: int, /) -> None:
    del done
