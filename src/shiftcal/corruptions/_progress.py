"""A progress bar on the terminal, for work that takes minutes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(doing: str, *, shown: bool | None) -> Iterator[Callable[[int, int], None]]:
    """Give a function that is told how much of how much is done.

    Args:
        doing: What stands before the bar.
        shown: Whether to show it; ``None`` is if standard error is a terminal.
    """
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not (terminal if shown is None else shown):
        yield _say_nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(doing, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _say_nothing(done: int, total: int, /) -> None:
    del done, total
