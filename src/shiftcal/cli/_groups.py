"""The group of every row of a target, from the file that ``--groups`` names."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftcal.cli._inputs import naming
from shiftcal.errors import FileError, InputError, InputWarning

if TYPE_CHECKING:
    from shiftcal.scores import Scores

_COLUMN, _ID = "group", "id"
_SUFFIXES = (".npy", ".npz", ".csv", ".parquet", ".txt")


@dataclass(frozen=True)
class _Given:
    """What a file says: a group per row, and maybe whose it is."""

    groups: Sequence[Any]
    ids: Sequence[Any] | None = None


def file_of(spec: str) -> tuple[Path, str | None]:
    """The file and the column that ``FILE`` or ``FILE:COLUMN`` names."""
    if Path(spec).exists() or ":" not in spec:
        return Path(spec), None
    file, _, column = spec.rpartition(":")
    # One letter before the colon is a drive of Windows.
    return (Path(file), column) if len(file) > 1 and column else (Path(spec), None)


def read_groups(spec: str, target: Scores) -> Sequence[Any]:
    """The group of every row of ``target``.

    Rows are joined by ids where both files have them, and by their order otherwise.

    Args:
        spec: ``FILE`` or ``FILE:COLUMN``.
        target: The rows.

    Raises:
        FileError: If the file cannot be read, has no such column, or lacks a row.
    """
    from shiftcal._checks import check_row_groups
    from shiftcal.scores._opening import find

    named, column = file_of(spec)
    path = find(named)
    if path.suffix.lower() not in _SUFFIXES:
        raise FileError(
            f"{path} must hold the groups of rows and end in {', '.join(_SUFFIXES)}; got "
            f"{path.suffix!r}."
        )
    with naming(path):
        given = _READERS[path.suffix.lower()](path, column)
        groups = _joined(given, target, path)
        check_row_groups(groups, n=target.n)  # its errors name the file here
    return groups


def _joined(given: _Given, target: Scores, path: Path) -> Sequence[Any]:
    if given.ids is None or target.ids is None:
        if (given.ids is None) != (target.ids is None):
            have = "no ids, the scores have" if given.ids is None else "ids, the scores have none"
            warnings.warn(
                f"groups of {path} were joined by order: it has {have}. "
                "Give both files ids, or neither, if the order may differ.",
                InputWarning,
                stacklevel=2,
            )
        return given.groups
    by_id = dict(zip(map(str, given.ids), given.groups, strict=True))
    if len(by_id) < len(given.groups):
        raise InputError("ids must differ from one another where groups are joined by them.")
    wanted = target.ids.tolist()
    lacking = [name for name in wanted if name not in by_id]
    if lacking:
        raise InputError(
            f"{len(lacking)} of {len(wanted)} rows have no group here, the first is "
            f"{lacking[0]!r}. Add them."
        )
    return [by_id[name] for name in wanted]


def _from_npy(path: Path, column: str | None) -> _Given:
    from shiftcal.scores.npy import read_array

    _refuse_column(column)
    return _Given(read_array(path))  # type: ignore[arg-type]


def _from_npz(path: Path, column: str | None) -> _Given:
    from shiftcal.scores.npz import read_member

    name = column or "groups"
    groups = read_member(path, name)
    if groups is None:
        raise InputError(f"there must be an array {name!r} in it; there is none.")
    ids = read_member(path, "ids")
    return _Given(groups, None if ids is None else ids.tolist())  # type: ignore[arg-type]


def _from_txt(path: Path, column: str | None) -> _Given:
    from shiftcal.scores._opening import parsing

    _refuse_column(column)
    with parsing(path, "text in UTF-8", (UnicodeError,)):
        lines = path.read_text("utf-8-sig").split("\n")
    return _Given([line.strip() for line in (lines[:-1] if lines[-1] == "" else lines)])


def _from_csv(path: Path, column: str | None) -> _Given:
    from shiftcal.scores._opening import parsing

    with (
        parsing(path, "comma-separated text in UTF-8", (csv.Error, UnicodeError)),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        rows = csv.reader(file, strict=True, skipinitialspace=True)
        header = next(filter(None, rows), [])
        name = _column(header, column)
        at = {key: header.index(key) for key in (name, _ID) if key in header}
        cells: dict[str, list[str]] = {key: [] for key in at}
        for row in filter(None, rows):
            if len(row) != len(header):
                raise FileError(
                    f"{path}, line {rows.line_num}: every row must have {len(header)} cells, as "
                    f"the first line has; this one has {len(row)}."
                )
            for key, i in at.items():
                cells[key].append(row[i])
    return _Given(cells[name], cells.get(_ID) if name != _ID else None)


def _from_parquet(path: Path, column: str | None) -> _Given:
    from shiftcal._optional import require
    from shiftcal.scores._opening import parsing, refuse_bomb

    parquet = require("pyarrow.parquet", extra="parquet", needed_by="a .parquet file")
    with (
        parsing(path, "a Parquet file"),
        parquet.ParquetFile(path, page_checksum_verification=True) as file,
    ):
        name = _column(file.schema_arrow.names, column)
        refuse_bomb(path, unpacked=8 * file.metadata.num_rows, stored=path.stat().st_size)
        wanted = [key for key in dict.fromkeys((name, _ID)) if key in file.schema_arrow.names]
        table = file.read(columns=wanted)
        cells = {key: table.column(key).to_pylist() for key in table.column_names}
    return _Given(cells[name], cells.get(_ID) if name != _ID else None)


def _refuse_column(column: str | None) -> None:
    if column is not None:
        raise InputError(f"it has no columns, so that {column!r} names nothing. Leave it out.")


def _column(header: Sequence[str], wanted: str | None) -> str:
    """The column that holds the groups: the one asked for, ``group``, or the only one there is."""
    others = [name for name in header if name != _ID]
    name = wanted or (_COLUMN if _COLUMN in header or len(others) != 1 else others[0])
    if header.count(name) == 1:
        return name
    if name in header:
        raise InputError(f"column names must differ from one another; {name!r} comes twice.")
    from shiftcal._registry import suggest

    hint = suggest(name, list(header)[:20]) if header else "It has no columns."
    how = "" if wanted else " Name the column: FILE:COLUMN."
    raise InputError(f"there must be a column {name!r} in it; there is none. {hint}{how}")


_READERS = {
    ".npy": _from_npy,
    ".npz": _from_npz,
    ".txt": _from_txt,
    ".csv": _from_csv,
    ".parquet": _from_parquet,
}
