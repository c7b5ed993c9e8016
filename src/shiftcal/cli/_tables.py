"""Aligned text. Nothing is cut off: a terminal's width folds cells, a pipe has none."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from io import StringIO

# Wider than any row when there is no terminal, so that every row stays one line.
_NO_LIMIT = 100_000


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
) -> str:
    """Columns under a header, bold on a terminal that has not been asked for plain text.

    Args:
        header: Name of every column.
        rows: Cells, as many a row as there are columns.
        right: Columns whose cells end flush, as numbers should.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in header:
        grid.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    terminal = sys.stdout is not None and sys.stdout.isatty()
    console = Console(
        file=StringIO(),
        width=shutil.get_terminal_size().columns if terminal else _NO_LIMIT,
        force_terminal=terminal and "NO_COLOR" not in os.environ,
        legacy_windows=False,
    )
    if (
        console.measure(grid, options=console.options.update(width=_NO_LIMIT)).maximum
        > console.width
    ):
        grid.padding = (0, 1, 0, 0)
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and values, one pair a line."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in pairs)


def fraction(value: float | None) -> str:
    """A number with four decimals, or a dash where there is none."""
    return "-" if value is None else f"{value:.4f}"


def temperature(value: float | None) -> str:
    """A temperature with three decimals, or a dash where the map is no temperature."""
    return "-" if value is None else f"{value:.3f}"


def count_of(n: int, noun: str = "image") -> str:
    """``1 image``, ``1,024 images``."""
    return f"{n:,} {noun}{'s' * (n != 1)}"
