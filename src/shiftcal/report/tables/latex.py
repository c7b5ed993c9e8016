"""Tables as LaTeX, ruled as the package booktabs has it."""

from __future__ import annotations

import re

from shiftcal.errors import InputError
from shiftcal.report.tables._latex_text import escaped
from shiftcal.report.tables._numbers import half_width, printed
from shiftcal.report.tables.table import Cell, Column, Row, Table

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/+-]*")


def to_latex(table: Table, *, caption: str | None = None, label: str = "") -> str:
    r"""A ``tabular``, within a ``table`` float if it has a caption, a label or a note.

    Needs ``\usepackage{booktabs}``. Numbers and intervals are as in markdown; groups span their
    columns.

    Args:
        table: What to print.
        caption: Plain text, escaped as all other; the title of the table if None; none if empty.
        label: What ``\ref`` names it by.

    Raises:
        InputError: If the label has a character that LaTeX does not take in one.
    """
    if label and not _LABEL.fullmatch(label):
        raise InputError(
            "label must be of letters, digits and any of : . _ / + - with a letter or digit "
            f"first; got {label!r}. Rename it."
        )
    above = escaped(table.title if caption is None else caption)
    note = escaped(table.note)
    if not (above or label or note):
        return _tabular(table)
    lines = [r"\begin{table}", r"\centering"]
    if above or label:
        # A label without a caption would name the section around it.
        lines.append(f"\\caption{{{above}}}" + (f"\\label{{{label}}}" if label else ""))
    lines.append(_tabular(table).rstrip("\n"))
    if note:
        lines.append(f"\\par\\smallskip{{\\footnotesize {note}\\par}}")
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _tabular(table: Table) -> str:
    places = "".join("l" if table.is_text(index) else "r" for index in range(len(table.columns)))
    lines = [f"\\begin{{tabular}}{{l{places}}}", r"\toprule", *_header(table), r"\midrule"]
    for index, row in enumerate(table.rows):
        if row.rule_before and index:  # the header has its rule
            lines.append(r"\midrule")
        lines.append(_row(row, table.columns))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _header(table: Table) -> list[str]:
    names = (escaped(column.header) for column in table.columns)
    last = _joined([escaped(table.corner), *names])
    if not any(name for name, _ in table.groups):
        return [last]
    spans, rules, at = [""], [], 2
    for name, count in table.groups:
        spans += [f"\\multicolumn{{{count}}}{{c}}{{{escaped(name)}}}"] if name else [""] * count
        rules += [f"\\cmidrule(lr){{{at}-{at + count - 1}}}"] if name else []
        at += count
    return [_joined(spans), " ".join(rules), last]


def _row(row: Row, columns: tuple[Column, ...]) -> str:
    return _joined([escaped(row.label), *map(_cell, row.cells, columns)])


def _joined(texts: list[str]) -> str:
    return " & ".join(texts) + r" \\"


def _cell(cell: Cell, column: Column) -> str:
    if cell.value is None:
        return "--"
    if isinstance(cell.value, str):
        text = escaped(cell.value)
        return f"\\textbf{{{text}}}" if cell.mark else text
    value = _number(cell.value, column.digits)
    main = f"\\mathbf{{{value}}}" if cell.mark else value
    return f"${main}{_interval(cell, cell.value, column.digits)}$"


def _interval(cell: Cell, value: float, digits: int) -> str:
    if cell.low is None or cell.high is None:
        return ""
    half = half_width(value, cell.low, cell.high, digits=digits)
    if half is None or cell.by_ends:
        return f"\\ [{_number(cell.low, digits)}, {_number(cell.high, digits)}]"
    return f" \\pm {_in_math(half)}"


def _number(value: float, digits: int) -> str:
    return _in_math(printed(value, digits))


def _in_math(number: str) -> str:
    return number.replace("∞", r"\infty")
