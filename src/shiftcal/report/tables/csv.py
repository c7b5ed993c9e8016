"""Tables as CSV, with every digit, and back."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path

from shiftcal.errors import FileError
from shiftcal.report.tables.table import Table

_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf)")


def to_csv(table: Table) -> str:
    """One line of headers, then the rows, as RFC 4180 has them (lines end in CR LF).

    A column is headed by its group and name. Beside it stand ``<header> low`` and
    ``<header> high`` if any of its cells has an interval, and ``<header> source`` if any has a
    source. Numbers are the shortest that read back as the same float; missing values are empty.
    Title, units and note are not in it.
    """
    beside = [table.beside(index) for index in range(len(table.columns))]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table.headers)
    for row in table.rows:
        line = [row.label]
        for cell, parts in zip(row.cells, beside, strict=True):
            line += [_field(getattr(cell, part)) for part in ("value", *parts)]
        writer.writerow(line)
    return text.getvalue()


def read_csv(path: str | os.PathLike[str]) -> dict[str, list[float | str]]:
    """The columns of a CSV that :func:`to_csv` wrote, from left to right.

    The first column, the labels, is text. In the others what looks like a number is one, and
    what is missing is the empty text.

    Raises:
        FileError: If there is no such file or it is not such a table.
    """
    header, *rows = _rows(Path(path))
    columns: dict[str, list[float | str]] = {header[0]: [row[0] for row in rows]}
    for index, name in enumerate(header[1:], start=1):
        columns[name] = [_value(row[index]) for row in rows]
    return columns


def _rows(path: Path) -> list[list[str]]:
    try:
        text = path.read_bytes().decode("utf-8")
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except OSError as error:
        raise FileError(
            f"the table {path} could not be read: {error.strerror}. Check the path."
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(
            f"the table {path} must be CSV in UTF-8; {error}. Write it again."
        ) from error
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1:
        raise FileError(
            f"the table {path} must have a line of headers and rows as long as it; got rows of "
            f"{sorted({len(row) for row in rows})} fields. Write it again."
        )
    if len(set(rows[0])) < len(rows[0]):
        raise FileError(
            f"the table {path} must have a header of its own for each column; "
            f"got {rows[0]}. Write it again."
        )
    return rows


def _field(value: float | str | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)


def _value(text: str) -> float | str:
    return float(text) if _NUMBER.fullmatch(text) else text
