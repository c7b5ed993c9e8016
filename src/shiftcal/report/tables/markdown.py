"""Tables as markdown, for a page or a code host."""

from __future__ import annotations

from shiftcal._markdown_text import bold, paragraphs, table_cell
from shiftcal.report.tables._numbers import half_width, printed
from shiftcal.report.tables.table import Cell, Column, Table

MISSING = "–"


def to_markdown(table: Table) -> str:
    """The title, the table, the note.

    Intervals are ``4.44 ± 0.12``, or ``4.44 [4.20, 4.70]`` if the two sides differ as printed or
    the cell asks for the ends.
    Numbers stand to the right, marked ones are bold, missing ones are ``–``. A group stands
    before the name of each of its columns, since markdown has one line of headers and no rules.
    """
    header = [table_cell(table.corner), *(_header(column) for column in table.columns)]
    body = [[table_cell(row.label), *map(_cell, row.cells, table.columns)] for row in table.rows]
    widths = [max(3, *map(len, column)) for column in zip(header, *body, strict=True)]
    left = [True, *(table.is_text(index) for index in range(len(table.columns)))]
    rule = [
        "-" * width if is_left else "-" * (width - 1) + ":"
        for width, is_left in zip(widths, left, strict=True)
    ]
    lines = [_line(texts, widths, left) for texts in (header, rule, *body)]
    parts = [bold(table.title), "\n".join(lines), paragraphs(table.note)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _header(column: Column) -> str:
    group = f"{table_cell(column.group)}: " if column.group else ""
    return group + table_cell(column.header)


def _line(texts: list[str], widths: list[int], left: list[bool]) -> str:
    padded = (
        text.ljust(width) if is_left else text.rjust(width)
        for text, width, is_left in zip(texts, widths, left, strict=True)
    )
    return f"| {' | '.join(padded)} |"


def _cell(cell: Cell, column: Column) -> str:
    if cell.value is None:
        return MISSING
    if isinstance(cell.value, str):
        text = table_cell(cell.value)
    else:
        text = printed(cell.value, column.digits) + _interval(cell, cell.value, column.digits)
    return f"**{text}**" if cell.mark and text else text


def _interval(cell: Cell, value: float, digits: int) -> str:
    if cell.low is None or cell.high is None:
        return ""
    half = half_width(value, cell.low, cell.high, digits=digits)
    if half is None or cell.by_ends:
        return f" [{printed(cell.low, digits)}, {printed(cell.high, digits)}]"
    return f" ± {half}"
