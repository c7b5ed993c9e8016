"""``.csv``: a table of text, for small sets and for looking at."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError
from shiftcal.scores._assemble import assemble
from shiftcal.scores._columns import ID, LABEL, columns_of, layout_of
from shiftcal.scores._opening import parsing
from shiftcal.scores._scores import Scores

_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
# Rows turned into Python objects at one time when writing.
_BLOCK = 1 << 12


def read(path: Path) -> Scores:
    """Scores from the columns of a comma-separated table in UTF-8."""
    with (
        parsing(path, "comma-separated text in UTF-8", (csv.Error, UnicodeError)),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        first = file.readline()
        _refuse_other_delimiters(path, first)
        rows = csv.reader(chain([first], file), strict=True, skipinitialspace=True)
        names = next(filter(None, rows), [])
        layout = layout_of(path, names)
        texts: dict[str, list[str]] = {name: [] for name in (LABEL, ID) if name in names}
        wanted = [names.index(name) for name in (*layout.scores, *layout.features)]
        table = _numbers(path, rows, names, wanted=wanted, texts=texts)
    k = len(layout.scores)
    return assemble(
        path,
        layout.kind,
        np.ascontiguousarray(table[:, :k]),
        labels=texts.get(LABEL),
        features=np.ascontiguousarray(table[:, k:]) if layout.features else None,
        ids=texts.get(ID),
        classes=layout.classes,
    )


def _numbers(
    path: Path,
    rows: Any,
    names: Sequence[str],
    *,
    wanted: Sequence[int],
    texts: Mapping[str, list[str]],
) -> NDArray[np.float64]:
    """The columns ``wanted`` as one array; those in ``texts`` are collected there on the way."""
    pick = itemgetter(*wanted)
    cells_at = [(names.index(name), column) for name, column in texts.items()]
    numbers = array("d")
    for row in _full_rows(path, len(names), rows):
        cells = pick(row)
        try:
            _refuse_pythonic("".join(cells))
            numbers.extend(map(float, cells))
        except ValueError:
            bad = next(i for i in wanted if not _is_number(row[i]))
            raise FileError(
                f"{path}, line {rows.line_num}: column {names[bad]!r} must hold numbers, with a "
                f"decimal point; got {row[bad][:40]!r}."
            ) from None
        for i, column in cells_at:
            column.append(row[i])
    return np.array(numbers, dtype=np.float64).reshape(-1, len(wanted))


def _full_rows(path: Path, width: int, rows: Any) -> Iterator[list[str]]:
    for row in rows:
        if not row:
            continue
        if len(row) != width:
            raise FileError(
                f"{path}, line {rows.line_num}: every row must have {width} cells, as the first "
                f"line has; this one has {len(row)}. The file may be cut short, or a comma may "
                "stand in an unquoted cell."
            )
        yield row


def _refuse_pythonic(text: str) -> None:
    """Raise on what Python reads as a number and other programs do not: 1_0, or other digits."""
    if "_" in text or not text.isascii():
        raise ValueError(text)


def _is_number(cell: str) -> bool:
    try:
        _refuse_pythonic(cell)
        float(cell)
    except ValueError:
        return False
    return True


def _refuse_other_delimiters(path: Path, first: str) -> None:
    for delimiter, word in _DELIMITERS.items():
        if delimiter in first and "," not in first:
            raise FileError(
                f"{path} must be separated by commas; this one is separated by {word}. "
                "Save it with commas, and decimal points in the numbers."
            )


def write(path: Path, scores: Scores, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write one row per sample; text is quoted, and numbers have all their digits."""
    columns = columns_of(scores, extra)
    with path.open("w", encoding="utf-8", newline="") as file:
        # Quoting all text keeps blanks, line ends and numbers-as-names what they are.
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(columns)
        for start in range(0, scores.n, _BLOCK):
            block = [column[start : start + _BLOCK].tolist() for column in columns.values()]
            writer.writerows(zip(*block, strict=True))
