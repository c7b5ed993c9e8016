"""What came of a study, as text and as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shiftcal.cli import _tables

if TYPE_CHECKING:
    from shiftcal.report.tables.table import Cell, Column, Table
    from shiftcal.studies import Done

_PAGE = "report.md"


def document_of(done: Done) -> dict[str, Any]:
    """A finished run for programs."""
    names = done.findings
    return {
        "folder": done.folder,
        "report": done.folder / _PAGE,
        "remarks": list(names.remarks),
        "tables": [done.folder / "tables" / f"{name}.csv" for name in names.tables],
        "figures": [done.folder / "figures" / f"{name}.png" for name in names.figures],
        "images_scored": done.scored,
        **({} if done.trained is None else {"trained": done.trained}),
        "evaluated": done.evaluated,
        "records": done.records,
        "left_out": [each.strip() for each in done.missing],
        "seconds": done.seconds,
    }


def text_of(done: Done) -> str:
    """The same for people: what was found, the first table, where the rest is."""
    blocks = ["\n".join(f"- {remark}" for remark in done.findings.remarks)]
    if done.findings.tables:
        blocks.append(table_text(next(iter(done.findings.tables.values()))))
    if done.missing:
        blocks.append("left out, because it is not there:\n" + "\n".join(done.missing))
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in done.seconds.items())
    trained = [] if done.trained is None else [("trained", f"{done.trained:,} in this run")]
    blocks.append(
        _tables.facts(
            [
                ("scored", f"{_tables.count_of(done.scored)} in this run"),
                *trained,
                ("evaluated", f"{done.evaluated:,} of {done.records:,} in this run"),
                ("seconds", stages),
                ("report", str(done.folder / _PAGE)),
            ]
        )
    )
    return "\n\n".join(block for block in blocks if block)


def table_text(table: Table) -> str:
    """A table of a study in aligned columns, with its title and its note."""
    header = [table.corner or "", *(_header(column) for column in table.columns)]
    rows = [
        [row.label, *(_cell(*pair) for pair in zip(row.cells, table.columns, strict=True))]
        for row in table.rows
    ]
    words = [name for i, name in enumerate(header[1:]) if not table.is_text(i)]
    grid = _tables.table(header, rows, right=words)
    return "\n".join(part for part in (table.title, grid, table.note) if part)


def _header(column: Column) -> str:
    return f"{column.group} {column.header}" if column.group else column.header


def _cell(cell: Cell, column: Column) -> str:
    from shiftcal.report.tables._numbers import half_width, printed

    if cell.value is None or isinstance(cell.value, str):
        return cell.value or "-"
    text = printed(cell.value, column.digits)
    if cell.low is None or cell.high is None:
        return text
    half = half_width(cell.value, cell.low, cell.high, digits=column.digits)
    ends = (printed(end, column.digits) for end in (cell.low, cell.high))
    return f"{text} [{', '.join(ends)}]" if half is None else f"{text} ± {half}"
