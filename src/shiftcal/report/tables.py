"""Tables: numbers with their intervals in; Markdown, LaTeX and CSV out."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.files import atomic_write, make_folder
from shiftcal.markup import bold, paragraphs, table_cell

# Half-widths that differ by less than this share of the numbers they come from are the same:
# ``mean - h`` and ``mean + h`` do not give back the same ``h`` to the last bit.
_NOISE = 1e-12


def printed(value: float, digits: int) -> str:
    """The number with ``digits`` digits after the point.

    Rounded as Python's ``format`` does: the exact binary value is rounded to the nearest, and
    half-way cases to the even digit, so 2.675 (which is a little less) gives 2.67, and 0.125
    gives 0.12. What rounds to zero has no sign: -0.001 gives 0.00.

    >>> printed(2.675, 2), printed(0.125, 2), printed(-0.001, 2), printed(float("inf"), 2)
    ('2.67', '0.12', '0.00', '∞')
    """
    return format(value, f"z.{digits}f").replace("inf", "∞")


@dataclass(frozen=True)
class Column:
    """What the numbers of a column are.

    Attributes:
        name: Plain text, like every text of a table; each format escapes it.
        unit: Of the numbers as they are, such as ``%``; shown as ``name (unit)``.
        group: Header over this and the neighbouring columns of the same group.
        digits: Printed after the point. The CSV has all of them.
        lower_is_better: None if no number of the column is better than another.
    """

    name: str
    unit: str = field(default="", kw_only=True)
    group: str = field(default="", kw_only=True)
    digits: int = field(default=2, kw_only=True)
    lower_is_better: bool | None = field(default=None, kw_only=True)

    @property
    def header(self) -> str:
        """The name with the unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def key(self) -> str:
        """The group and the name, which must be unique; heads the CSV."""
        return f"{self.group} {self.name}" if self.group else self.name


@dataclass(frozen=True)
class Cell:
    """A number, a word, or nothing.

    Attributes:
        value: In the unit of the column. None is a missing value.
        low: Lower end of the interval around it, or None.
        high: Upper end; None exactly if ``low`` is.
        by_ends: Whether the interval is printed by its ends even if it is symmetric: for a range,
            which ± would make look like a confidence interval.
        mark: Whether it is printed bold.
        source: Where it comes from, such as the file of the arrays behind it. Only in the CSV.
    """

    value: float | str | None
    low: float | None = None
    high: float | None = None
    by_ends: bool = field(default=False, kw_only=True)
    mark: bool = field(default=False, kw_only=True)
    source: str = field(default="", kw_only=True)

    @property
    def number(self) -> float | None:
        """The value, unless it is a word."""
        return None if isinstance(self.value, str) else self.value


@dataclass(frozen=True)
class Row:
    """A label and a cell for each column.

    Attributes:
        label: What the row is about.
        cells: As many as there are columns.
        ranked: Whether its numbers can be the best of their columns. Not for a bound, a reference,
            or numbers of others.
    """

    label: str
    cells: tuple[Cell, ...]
    ranked: bool = field(default=True, kw_only=True)


@dataclass(frozen=True)
class Table:
    """Rows under columns.

    Attributes:
        title: One line above, or empty.
        columns: At least one; no two with the same group and name.
        rows: Each has one cell for each column.
        note: Below the table.
        corner: Header of the labels, such as ``Method``.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = field(default="", kw_only=True)
    corner: str = field(default="", kw_only=True)

    def parts_of(self, index: int) -> tuple[str, ...]:
        """Which of low, high and source any cell of a column has."""
        cells = [row.cells[index] for row in self.rows]
        ends = ("low", "high") if any(cell.low is not None for cell in cells) else ()
        return (*ends, "source") if any(cell.source for cell in cells) else ends

    def is_text(self, index: int) -> bool:
        """Whether a column has words and no number, and so is aligned to the left."""
        values = {row.cells[index].value for row in self.rows} - {None}
        return bool(values) and all(isinstance(value, str) for value in values)

    def marked(self) -> Table:
        """The same table with the best number of each column marked, and no other.

        Numbers that print the same are equally good, and all of them are marked. Rows that are
        not ranked take no part. Columns where nothing is better stay as they are.
        """
        rows = [list(row.cells) for row in self.rows]
        for j, column in enumerate(self.columns):
            if column.lower_is_better is None:
                continue
            ranked = [row.cells[j].number for row in self.rows if row.ranked]
            numbers = [number for number in ranked if number is not None]
            choose = min if column.lower_is_better else max
            best = printed(choose(numbers), column.digits) if numbers else ""
            for row, cells in zip(self.rows, rows, strict=True):
                number = cells[j].number if row.ranked else None
                mark = number is not None and printed(number, column.digits) == best
                cells[j] = replace(cells[j], mark=mark)
        pairs = zip(self.rows, rows, strict=True)
        return replace(self, rows=tuple(replace(row, cells=tuple(new)) for row, new in pairs))


def to_csv(table: Table) -> str:
    """One line of headers, then the rows, as in RFC 4180 (lines end in CR LF).

    A column is headed by its group and name. After it come ``<header> low`` and
    ``<header> high`` if any of its cells has an interval, and ``<header> source`` if any has a
    source. Numbers are the shortest that read back as the same float; missing values are empty.
    Title, units and note are not in it.
    """
    parts_of = [table.parts_of(index) for index in range(len(table.columns))]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    names = [table.corner or "label"]
    for column, parts in zip(table.columns, parts_of, strict=True):
        names += [column.key, *(f"{column.key} {part}" for part in parts)]
    writer.writerow(names)
    for row in table.rows:
        line: list[Any] = [row.label]
        for cell, parts in zip(row.cells, parts_of, strict=True):
            values = (getattr(cell, part) for part in ("value", *parts))
            # As Python's numbers: the repr of numpy's has the name of its type.
            line += [value.item() if isinstance(value, np.generic) else value for value in values]
        writer.writerow(line)
    return text.getvalue()


def number_and_interval(cell: Cell, digits: int) -> tuple[str, str]:
    """``4.44`` and `` ± 0.12``, or `` [4.20, 4.70]`` if the sides print differently."""
    assert cell.number is not None
    number, low, high = cell.number, cell.low, cell.high
    value = printed(number, digits)
    if low is None or high is None:
        return value, ""
    below, above = number - low, high - number
    noise = _NOISE * max(abs(number), abs(low), abs(high))
    alike = printed(below, digits) == printed(above, digits) or abs(below - above) <= noise
    if alike and not cell.by_ends:
        return value, f" ± {printed((below + above) / 2, digits)}"
    return value, f" [{printed(low, digits)}, {printed(high, digits)}]"


def to_markdown(table: Table) -> str:
    """The title, the table, the note.

    Intervals are ``4.44 ± 0.12``, or ``4.44 [4.20, 4.70]`` if the two sides differ as printed or
    the cell asks for the ends. Numbers are aligned to the right, marked ones are bold, missing
    ones are ``–``. A group stands before the name of each of its columns, since Markdown has one
    line of headers and no rules.
    """
    header, *body = _texts(table, table_cell, "**{}**", "–")
    widths = [max(3, *map(len, column)) for column in zip(header, *body, strict=True)]
    left = [True, *(table.is_text(index) for index in range(len(table.columns)))]
    rule = [
        "-" * width if is_left else "-" * (width - 1) + ":"
        for width, is_left in zip(widths, left, strict=True)
    ]
    pads = [str.ljust if is_left else str.rjust for is_left in left]
    lines = [
        f"| {' | '.join(pad(text, n) for pad, text, n in zip(pads, texts, widths, strict=True))} |"
        for texts in (header, rule, *body)
    ]
    parts = [bold(table.title), "\n".join(lines), paragraphs(table.note)]
    return "\n\n".join(part for part in parts if part) + "\n"


def to_latex(table: Table) -> str:
    """A ``tabular`` for the package booktabs, with the cells of :func:`to_markdown`."""
    header, *body = _texts(table, _latex, r"\textbf{{{}}}", "–")
    letters = ["l", *("l" if table.is_text(j) else "r" for j in range(len(table.columns)))]
    lines = [rf"{' & '.join(texts)} \\" for texts in (header, *body)]
    head = [rf"\begin{{tabular}}{{{''.join(letters)}}}", r"\toprule", lines[0], r"\midrule"]
    text = "\n".join([*head, *lines[1:], r"\bottomrule", r"\end{tabular}"]) + "\n"
    for sign, command in {"±": r"$\pm$", "∞": r"$\infty$", "–": "--"}.items():
        text = text.replace(sign, command)
    return text


def _latex(text: str) -> str:
    """Plain text as LaTeX that prints just that text."""
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    words |= {character: f"\\{character}" for character in "&%$#_{}"}
    return " ".join("".join(words.get(character, character) for character in text).split())


def _texts(
    table: Table, escape: Callable[[str], str], strong: str, missing: str
) -> list[list[str]]:
    """Header and rows as they are printed; marked cells are put into ``strong``."""

    def text(cell: Cell, column: Column) -> str:
        if cell.value is None:
            return missing
        if isinstance(cell.value, str):
            found = escape(cell.value)
        else:
            found = "".join(number_and_interval(cell, column.digits))
        return strong.format(found) if cell.mark and found else found

    groups = [f"{escape(column.group)}: " if column.group else "" for column in table.columns]
    header = [group + escape(c.header) for group, c in zip(groups, table.columns, strict=True)]
    rows = [[escape(row.label), *map(text, row.cells, table.columns)] for row in table.rows]
    return [[escape(table.corner), *header], *rows]


def write_table(table: Table, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write ``<name>.md`` and ``<name>.csv``, each atomically.

    The same table gives the same bytes, everywhere.

    Args:
        table: What to write.
        folder: Created if missing.
        name: Of the files, without an ending.

    Raises:
        FileError: If a file cannot be written.
    """
    make_folder(Path(folder))
    files = []
    for ending, text in {"md": to_markdown(table), "csv": to_csv(table)}.items():
        files.append(Path(folder) / f"{name}.{ending}")
        with atomic_write(files[-1]) as temporary:
            # As bytes: writing text would change the ends of lines on some systems.
            temporary.write_bytes(text.encode())
    return files
