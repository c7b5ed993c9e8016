"""The formats of scores files: npz, npy, csv and parquet.

Reading gives :class:`Parts`, arrays as the file has them; :mod:`shiftcal.scores` makes consistent
scores of them. Nothing is ever unpickled.
"""

from __future__ import annotations

import csv
import math
import os
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError, require, suggest
from shiftcal.files import PARQUET, npz_array, open_npz, open_parquet, parsing, read_npy, read_npz
from shiftcal.types import InputKind

KINDS: tuple[InputKind, InputKind] = ("logits", "probabilities")
OPTIONAL = ("labels", "features", "ids", "classes")
LABEL, ID = "label", "id"
# Columns that say which sample a row is of; the first that is there counts.
KEYS = (ID, "file", "path")
PREFIX = {"logits": "logit_", "probabilities": "probability_", "features": "feature_"}
# Above this many bytes the array stays on disk and its pages are read as they are used.
_MAPPED_FROM = 64 << 20
# The colon of a drive, as in C:\\x.npz, stands before the ending and not behind it.
_MEMBER = re.compile(r"(.+\.npz):(.+)", re.IGNORECASE | re.DOTALL)
# Rows of a large table that are read at one time.
_BATCH = 1 << 18
# Rows turned into Python objects at one time when writing a table of text.
_BLOCK = 1 << 12
_LISTED = 8
_pyarrow = partial(require, extra="parquet", needed_by="a .parquet file")


class Parts(NamedTuple):
    """The raw parts of a scores file.

    Attributes:
        kind: What the scores are.
        values: The scores ``(n, k)``.
        labels: Indices or names of classes ``(n,)``; a list holds the cells of a table, of which
            some may be empty.
        features: Features ``(n, d)``.
        ids: Names of the samples ``(n,)``.
        classes: Names of the classes ``(k,)``.
    """

    kind: InputKind
    values: NDArray[Any]
    labels: NDArray[Any] | list[Any] | None = None
    features: NDArray[Any] | None = None
    ids: NDArray[Any] | Sequence[str] | None = None
    classes: NDArray[Any] | Sequence[str] | None = None


class Columns(NamedTuple):
    """Columns of a table that have other names than ours.

    Attributes:
        probabilities: Of probabilities: one per class, the one of the positive class, or one
            pattern such as ``p_*``, where the classes are what ``*`` stands for.
        logits: The same of logits; one is log-odds.
        id: Of the names of samples.
        label: Of labels.
        positive: The class that one column of scores is of.
    """

    probabilities: tuple[str, ...] = ()
    logits: tuple[str, ...] = ()
    id: str | None = None
    label: str | None = None
    positive: str | None = None


_OURS = Columns()
# Some rows of a file to write: their parts, and further columns by name.
Piece: TypeAlias = tuple[Parts, Mapping[str, NDArray[Any]]]


def suffix_of(path: Path, suffixes: tuple[str, ...]) -> str:
    """The suffix of the file in lower case.

    Raises:
        FileError: If it is not one of ``suffixes``.
    """
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise FileError(
            f"{path} must end in the suffix of its format; got {path.suffix!r}. "
            f"{suggest(suffix, suffixes)}"
        )
    return suffix


def is_table(path: Path) -> bool:
    """Whether the format has columns with names."""
    return path.suffix.lower() in (".csv", ".parquet")


def is_empty(cell: Any) -> bool:
    """Whether a cell of a table holds nothing: ``None``, NaN or ``""``."""
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def text_of(cells: Sequence[Any]) -> list[str]:
    """Cells as text, empty where they are empty."""
    return ["" if is_empty(cell) else str(cell) for cell in cells]


def _from_arrays(path: Path, names: Collection[str], load: Callable[[str], NDArray[Any]]) -> Parts:
    """Parts of a file of named arrays; only those that are used are loaded."""
    kind = the_kind(path, names)
    _check_spelling(path, names, OPTIONAL)
    return Parts(kind, load(kind), **{name: load(name) for name in OPTIONAL if name in names})


def the_kind(path: Path, names: Collection[str]) -> InputKind:
    """Which of the two kinds of scores is among the names of a file's arrays.

    Raises:
        FileError: If none is, or both.
    """
    found = [kind for kind in KINDS if kind in names]
    if len(found) != 1:
        raise FileError(
            f"{path} must hold either 'logits' (before softmax) or 'probabilities' (after it); it "
            f"holds {_listed(sorted(names))}."
        )
    return found[0]


def _check_spelling(path: Path, found: Iterable[str], expected: Sequence[str]) -> None:
    """Raise if an expected name that is absent is there with other capitals, or plural."""
    names = list(found)
    for wanted in set(expected) - set(names):
        for name in names:
            if name.strip().casefold().removesuffix("s") == wanted.removesuffix("s"):
                raise FileError(f"{path} holds {name!r}, which is not read; rename it {wanted!r}.")


def _listed(names: Sequence[str]) -> str:
    """The first few names, for a message about a file that lacks one."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(repr, names[:_LISTED])) + more or "nothing"


# --------------------------------------------------------------------------------------
# .npz and .npy: arrays by name, in one file or in several.
# --------------------------------------------------------------------------------------


def _npz_read(path: Path, columns: Columns = _OURS) -> Parts:
    _refuse_columns(path, columns)
    with open_npz(path) as archive:
        return _from_arrays(path, archive.files, lambda name: npz_array(archive, name))


def _npz_write(path: Path, pieces: Iterable[Piece]) -> None:
    parts, extra = _joined(list(pieces))
    numbers: dict[str, Any] = {
        parts.kind: parts.values,
        "labels": parts.labels,
        "features": parts.features,
    }
    arrays: dict[str, Any] = {}
    for name, x in (numbers | dict(extra)).items():
        if isinstance(x, np.ndarray):  # labels are written as int64 on every machine
            dtype = np.dtype(np.int64) if x.dtype.kind == "i" else x.dtype.newbyteorder("=")
            arrays[name] = np.ascontiguousarray(x, dtype=dtype)
    for name, names in (("ids", parts.ids), ("classes", parts.classes)):
        if names is not None:
            arrays[name] = np.asarray(names, dtype=np.str_)
    with path.open("wb") as file:  # given a name, numpy would add a suffix of its own
        np.savez(file, **arrays)


def _joined(pieces: Sequence[Piece]) -> Piece:
    """Pieces as one."""
    if len(pieces) == 1:
        return pieces[0]
    first, more = pieces[0]
    rows: dict[str, Any] = {
        name: np.concatenate([getattr(parts, name) for parts, _ in pieces])
        for name in ("values", "labels", "features", "ids")
        if getattr(first, name) is not None
    }
    return first._replace(**rows), {
        name: np.concatenate([e[name] for _, e in pieces]) for name in more
    }


def read_member(path: Path, name: str) -> NDArray[Any] | None:
    """One array of an archive that need not hold scores; ``None`` if it is not there."""
    return read_npz(path, [name]).get(name)


def member_of(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """The file and the key of ``FILE.npz:KEY``; any other path, or an existing one, has no key."""
    text = os.fspath(path)
    parts = None if Path(text).exists() else _MEMBER.fullmatch(text)
    return (Path(text), None) if parts is None else (Path(parts[1]), parts[2])


def named_member(path: Path, key: str | None) -> NDArray[Any]:
    """The array of that name in an archive.

    Raises:
        FileError: If it is not there, with the names that are.
    """
    with open_npz(path) as archive:
        if key is not None and key in archive.files:
            return npz_array(archive, key)
        names = _listed(archive.files)
    raise FileError(f"{path} has no array {key!r}; it holds {names}. Name one as {path.name}:NAME.")


def _refuse_columns(path: Path, columns: Columns) -> None:
    if columns != _OURS:
        raise FileError(
            f"{path} has no columns to name; the options of columns are for .csv and .parquet. "
            "Leave them out."
        )


def _npy_read(path: Path, columns: Columns = _OURS) -> Parts:
    """From ``x_logits.npy`` (or ``x.npy``) and its siblings ``x_labels.npy`` and so on."""
    _refuse_columns(path, columns)
    part = _part(path)
    if part in OPTIONAL:
        raise FileError(f"{path} is named as the {part} of a set; name the file with its scores.")
    stem = path.stem.removesuffix(part) if part else f"{path.stem}_"
    files = {part or "logits": path}
    for name in OPTIONAL:
        sibling = path.with_name(f"{stem}{name}{path.suffix}")
        if sibling.is_file():
            files[name] = sibling
    return _from_arrays(path, files, lambda name: read_array(files[name]))


def _part(path: Path) -> str:
    """What the name of an ``.npy`` file says it holds; empty if it says nothing."""
    ends = (name for name in (*KINDS, *OPTIONAL) if f"_{path.stem}".endswith(f"_{name}"))
    return next(ends, "")


def is_part(path: Path, parts: Collection[str] = OPTIONAL) -> bool:
    """Whether an ``.npy`` file holds labels or the like by its name, and scores are elsewhere."""
    return path.suffix.lower() == ".npy" and _part(path) in parts


def read_array(path: Path) -> NDArray[Any]:
    """The array of an ``.npy`` file, on disk if it is large."""
    return read_npy(path, mapped=path.stat().st_size >= _MAPPED_FROM)


# --------------------------------------------------------------------------------------
# .csv and .parquet: tables. The names of the columns say what they hold.
# --------------------------------------------------------------------------------------


class _Layout(NamedTuple):
    """Which columns of a table are what; ``scores`` or ``features`` may be one list column."""

    kind: InputKind
    scores: tuple[str, ...]
    features: tuple[str, ...]
    classes: tuple[str, ...] | None  # None if they are numbered, in a list column or in one
    texts: tuple[str, ...]  # the columns of labels and ids that are there
    id: str | None  # the column of ids
    label: str  # the column of labels

    def parts(
        self, matrix: Callable[[Sequence[str]], NDArray[Any]], cells: Mapping[str, Any]
    ) -> Parts:
        return Parts(
            self.kind,
            matrix(self.scores),
            cells.get(self.label),
            matrix(self.features) if self.features else None,
            None if self.id is None else text_of(cells[self.id]),
            self.classes,
        )


def _layout_of(
    path: Path, names: Sequence[str], lists: Collection[str] = (), chosen: Columns = _OURS
) -> _Layout:
    """Find the columns of scores, features, labels and ids by their names.

    Args:
        path: The file, for messages.
        names: Names of all columns.
        lists: Those of ``logits``, ``probabilities`` and ``features`` that are list columns.
        chosen: Those that the user named.
    """
    scores = chosen.logits or chosen.probabilities
    for wanted in (chosen.id, chosen.label):
        if wanted is not None:
            _check_there(path, wanted, names)
    columns = {
        what: [what] if what in lists else [name for name in names if name.startswith(prefix)]
        for what, prefix in PREFIX.items()
    }
    _check_spelling(
        path, names, [ours for ours, name in ((LABEL, chosen.label), (ID, chosen.id)) if not name]
    )
    for name in () if scores else names:
        stem, underscore, _ = name.partition("_")
        wanted = f"{stem.strip().casefold().removesuffix('s')}_"
        if underscore and wanted in PREFIX.values() and not name.startswith(wanted):
            raise FileError(f"{path} holds {name!r}, which is not read; name it {wanted}<class>.")
    label = chosen.label or LABEL
    id_column = chosen.id or next((name for name in KEYS if name in names and name != label), None)
    kind: InputKind
    if scores:
        kind = "logits" if chosen.logits else "probabilities"
        columns[kind], suffixes = _named_scores(path, names, scores, (label, id_column))
    else:
        found = [kind for kind in KINDS if columns[kind]]
        if len(found) != 1 or (found[0] not in lists and len(columns[found[0]]) < 2):
            raise FileError(
                f"{path} must have columns logit_<class> or probability_<class>, one per class, at "
                f"least two, and not both kinds; its columns are {_listed(names)}. Name others "
                "with --probability-columns or --logit-columns (in Python probability_columns=)."
            )
        kind = found[0]
        suffixes = [name.removeprefix(PREFIX[kind]) for name in columns[kind]]
    listed = columns[kind][0] in lists
    numbered = listed or set(suffixes) == {str(i) for i in range(len(suffixes))}
    order = list(range(len(suffixes)))
    if numbered and not listed:
        order.sort(key=lambda i: int(suffixes[i]))
    layout = _Layout(
        kind,
        tuple(columns[kind][i] for i in order),
        _in_order(columns["features"], PREFIX["features"]),
        None if numbered or len(suffixes) == 1 else tuple(suffixes),
        tuple(name for name in (label, id_column) if name and name in names),
        id_column,
        label,
    )
    used = (*layout.scores, *layout.features, *layout.texts)
    _check_once(path, names, used)
    if twice := next((name for name in used if used.count(name) > 1), None):
        raise FileError(f"{path}: the column {twice!r} is named twice; leave one out.")
    return layout


def _check_there(path: Path, wanted: str, names: Sequence[str]) -> None:
    if wanted not in names:
        raise FileError(f"{path} has no column {wanted!r}. {suggest(wanted, names)}")


def _named_scores(
    path: Path, names: Sequence[str], wanted: Sequence[str], others: Collection[str | None]
) -> tuple[list[str], list[str]]:
    """The columns of scores that the user named, and the classes they are of."""
    before, star, after = wanted[0].partition("*")
    if len(wanted) > 1 or not star or wanted[0] in names:
        for name in wanted:
            _check_there(path, name, names)
        return list(wanted), list(wanted)
    size = len(before) + len(after)
    found = [
        name
        for name in names
        if name.startswith(before) and name.endswith(after) and len(name) > size
        if name not in others
    ]
    if len(found) < 2:
        raise FileError(
            f"{path}: {wanted[0]!r} must match two columns or more, one per class; it matches "
            f"{_listed(found)} of {_listed(names)}."
        )
    return found, [name[len(before) : len(name) - len(after)] for name in found]


def _check_once(path: Path, names: Sequence[str], used: Sequence[str]) -> None:
    for name in used:
        if names.count(name) > 1:
            raise FileError(f"{path} has the column {name!r} twice; leave one out.")


def _in_order(names: Sequence[str], prefix: str) -> tuple[str, ...]:
    """By number where all are numbered, since tables are often sorted as 0, 1, 10, 2."""
    suffixes = [name.removeprefix(prefix) for name in names]
    if not all(suffix.isascii() and suffix.isdigit() for suffix in suffixes):
        return tuple(names)
    return tuple(sorted(names, key=lambda name: int(name.removeprefix(prefix))))


def _columns(parts: Parts, extra: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every column to write, by name and in order; classes by their names where they have any."""
    names = None if parts.classes is None else np.array(parts.classes, dtype=np.str_)
    columns: dict[str, Any] = {ID: parts.ids, LABEL: parts.labels, **extra}
    for name in (LABEL, "predicted", "model_predicted"):
        if names is not None and columns.get(name) is not None:
            columns[name] = names[columns[name]]
    suffixes = range(parts.values.shape[1]) if names is None else names
    for i, suffix in enumerate(suffixes):
        columns[f"{PREFIX[parts.kind]}{suffix}"] = parts.values[:, i]
    for i in range(0 if parts.features is None else parts.features.shape[1]):
        columns[f"{PREFIX['features']}{i}"] = parts.features[:, i]  # type: ignore[index]
    return {name: column for name, column in columns.items() if column is not None}


def read_cells(
    path: Path, wanted: Sequence[str]
) -> tuple[dict[str, list[Any]], tuple[str, ...] | None]:
    """The cells of those columns of a table that are there, and the classes if it holds scores.

    Rows of a ``.csv`` may be short; their missing cells are empty.
    """
    lists: set[str] = set()
    if path.suffix.lower() == ".parquet":
        with open_parquet(path) as file:
            names, lists = file.schema_arrow.names, _lists(file.schema_arrow)
            _check_spelling(path, names, wanted)
            columns = {
                name: file.read(columns=[name]).column(0) for name in wanted if name in names
            }
            cells = {name: _cells(path, column, name) for name, column in columns.items()}
    else:
        with _csv_rows(path) as (names, rows):
            _check_spelling(path, names, wanted)
            _check_once(path, names, wanted)
            cells = {name: [] for name in wanted if name in names}
            at = [(names.index(name), cells[name]) for name in cells]
            for _, row in rows:
                for i, column in at:
                    column.append(row[i] if i < len(row) else "")
    scored = any(name in KINDS or name.startswith(("logit_", "probability_")) for name in names)
    return cells, _layout_of(path, names, lists).classes if scored else None


def column_names(path: Path) -> list[str]:
    """The names of the columns of a table."""
    if path.suffix.lower() == ".parquet":
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
    with _csv_rows(path) as (names, _):
        return names


@contextmanager
def _csv_rows(path: Path, *, full: bool = False) -> Iterator[tuple[list[str], Any]]:
    """The header of a table of text, and its rows with the numbers of their lines.

    Args:
        path: The file.
        full: Whether rows must have a cell for every column; else they may be short.
    """
    with (
        parsing(path, "comma-separated text in UTF-8"),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        first = file.readline()
        if "," not in first and (mark := next((mark for mark in ";\t|" if mark in first), "")):
            raise FileError(
                f"{path} must be separated by commas; this one is separated by {mark!r}. Save it "
                "with commas, and decimal points in the numbers."
            )
        lines = csv.reader(chain([first], file), strict=True, skipinitialspace=True)
        names = next(filter(None, lines), [])

        def rows() -> Iterator[tuple[int, list[str]]]:
            for row in filter(None, lines):
                if len(row) > len(names) or (full and len(row) < len(names)):
                    raise FileError(
                        f"{path}, line {lines.line_num}: every row must have {len(names)} cells, "
                        f"as the first line has; this one has {len(row)}."
                    )
                yield lines.line_num, row

        yield names, rows()


def _number(cell: str) -> float:
    """A number, or a percentage such as ``45.2%`` as a fraction."""
    number, percent, rest = cell.strip().partition("%")
    return float(f"{number.strip()}e-2" if percent and not rest else cell)


def _csv_read(path: Path, columns: Columns = _OURS) -> Parts:
    with _csv_rows(path, full=True) as (names, rows):
        layout = _layout_of(path, names, chosen=columns)
        wanted = [*layout.scores, *layout.features]
        # A getter of one cell gives it bare.
        first = names.index(wanted[0])
        numbers: Callable[[list[str]], Sequence[str]] = (
            itemgetter(*map(names.index, wanted)) if len(wanted) > 1 else lambda row: [row[first]]
        )
        number = float if layout.kind == "logits" else _number
        texts = dict[str, list[Any]]()
        at = [(names.index(name), texts.setdefault(name, [])) for name in layout.texts]
        values = array("d")
        for line, row in rows:
            cells = numbers(row)
            try:
                try:
                    values.extend(tuple(map(float, cells)))
                except ValueError:
                    values.extend(tuple(map(number, cells)))
            except ValueError as error:
                raise FileError(
                    f"{path}, line {line}: scores and features must be numbers, with a decimal "
                    f"point; {error}."
                ) from None
            for i, column in at:
                column.append(row[i])
        table = np.array(values, dtype=np.float64).reshape(-1, len(wanted))
    k = len(layout.scores)
    return layout.parts(
        lambda some: np.ascontiguousarray(table[:, :k] if some is layout.scores else table[:, k:]),
        texts,
    )


def _csv_write(path: Path, pieces: Iterable[Piece]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        # Quoting all text keeps blanks, line ends and numbers-as-names what they are.
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        for number, (parts, extra) in enumerate(pieces):
            columns = _columns(parts, extra)
            if number == 0:
                writer.writerow(columns)
            for start in range(0, len(parts.values), _BLOCK):
                block = [column[start : start + _BLOCK].tolist() for column in columns.values()]
                writer.writerows(zip(*block, strict=True))


def _parquet_read(path: Path, columns: Columns = _OURS) -> Parts:
    with ExitStack() as stack:
        file = stack.enter_context(open_parquet(path))
        schema = file.schema_arrow
        layout = _layout_of(path, schema.names, _lists(schema), columns)
        numbers, texts = [*layout.scores, *layout.features], list(layout.texts)
        if path.stat().st_size < _MAPPED_FROM:
            return table_parts(path, file.read(columns=[*numbers, *texts]), columns=columns)
        # Larger ones go to a file without a name, batch by batch.
        arrow = _pyarrow("pyarrow")
        stacks: dict[str, Stack] = {}
        of_numbers = columns._replace(id=None, label=None)
        groups = range(file.num_row_groups)  # one at a time: all of them would stay in memory
        for batch in chain.from_iterable(
            file.iter_batches(_BATCH, row_groups=[group], columns=numbers) for group in groups
        ):
            part = table_parts(path, arrow.Table.from_batches([batch]), columns=of_numbers)
            for name in ("values", "features"):
                if (x := getattr(part, name)) is not None:
                    if name not in stacks:
                        stacks[name] = stack.enter_context(Stack())
                    stacks[name].add(x, path)
        arrays = {name: one.array() for name, one in stacks.items()}
        cells: dict[str, Any] = {}
        for name in texts:
            cells[name] = _cells(path, file.read(columns=[name]).column(0), name)
        arrow.default_memory_pool().release_unused()
    parts = layout.parts(lambda _: arrays["values"], cells)
    return parts._replace(features=arrays.get("features"))


class Stack(AbstractContextManager["Stack"]):
    """An array on disk that grows by rows; the system reads and drops its pages as needed.

    The file has no name and ends with the last use of the array.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile(prefix="shiftcal-")  # noqa: SIM115
        self._like: NDArray[Any] | None = None

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def add(self, rows: NDArray[Any], path: Path) -> None:
        """Add rows of the file ``path``.

        Raises:
            FileError: If rows before had another number of columns or another type.
        """
        like = self._like = rows[:0] if self._like is None else self._like
        if (rows.shape[1], rows.dtype) != (like.shape[1], like.dtype):
            raise FileError(
                f"{path}: all rows must have the same number of columns and the same type; before "
                f"were {like.shape[1]} of {like.dtype}, now {rows.shape[1]} of {rows.dtype}."
            )
        self._file.write(np.ascontiguousarray(rows).data)

    def array(self) -> NDArray[Any]:
        """All rows."""
        assert self._like is not None
        self._file.flush()
        return np.memmap(self._file, self._like.dtype, "r").reshape(-1, self._like.shape[1])


def table_parts(path: Path, table: Any, *, kind: str = PARQUET, columns: Columns = _OURS) -> Parts:
    """Parts of a table of pyarrow's.

    Args:
        path: Where it came from, for messages.
        table: The table.
        kind: What that is, such as ``"a Parquet file"``.
        columns: Those that the user named.
    """
    lists = _lists(table.schema)
    layout = _layout_of(path, table.schema.names, lists, columns)

    def matrix(names: Sequence[str]) -> NDArray[Any]:
        if names[0] in lists:
            return _from_lists(path, table.column(names[0]), names[0])
        arrays = [_column(path, table.column(name), name) for name in names]
        out = np.empty((table.num_rows, len(arrays)), dtype=np.result_type(*arrays))
        for i, column in enumerate(arrays):
            out[:, i] = column
        return out

    with parsing(path, kind):
        return layout.parts(matrix, table.select(list(layout.texts)).to_pydict())


def _lists(schema: Any) -> set[str]:
    types = _pyarrow("pyarrow").types
    are = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    there = [name for name in PREFIX if name in schema.names]
    return {name for name in there if any(is_(schema.field(name).type) for is_ in are)}


def _from_lists(path: Path, column: Any, name: str) -> NDArray[Any]:
    lengths = np.unique(_pyarrow("pyarrow.compute").list_value_length(column))
    if column.null_count or len(lengths) > 1:
        raise FileError(
            f"{path}: column {name!r} must have a list of the same length in every row; got "
            f"lengths {lengths.tolist()}."
        )
    flat = [_column(path, chunk.flatten(), name) for chunk in column.chunks]
    return np.concatenate([*flat, np.empty(0, np.float16)]).reshape(len(column), *lengths)


def _column(path: Path, column: Any, name: str) -> NDArray[Any]:
    types = _pyarrow("pyarrow").types
    number = types.is_integer(column.type) or types.is_floating(column.type)
    if column.null_count or not number:
        raise FileError(
            f"{path}: column {name!r} must have a number in every row; it holds {column.type}, "
            f"{column.null_count} missing. Drop those rows."
        )
    # Every other way to numpy imports pandas, where it is installed; that takes half a second.
    chunks = [np.from_dlpack(chunk) for chunk in getattr(column, "chunks", [column])]
    return chunks[0] if len(chunks) == 1 else np.concatenate([*chunks, np.empty(0, np.float16)])


def _cells(path: Path, column: Any, name: str) -> Any:
    """Whole numbers as an array, anything else as objects; there may be many."""
    whole = _pyarrow("pyarrow").types.is_integer(column.type) and not column.null_count
    return _column(path, column, name) if whole else column.to_pylist()


def _to_arrow(x: NDArray[Any]) -> Any:
    """A column of pyarrow's, without a copy where possible and without pandas; see above."""
    arrow = _pyarrow("pyarrow")
    if x.dtype.kind == "U":
        return arrow.array(x.tolist())
    plain = np.ascontiguousarray(x, x.dtype.newbyteorder("="))
    buffer = np.packbits(plain, bitorder="little") if plain.dtype == bool else plain
    kind = arrow.from_numpy_dtype(plain.dtype)
    return arrow.Array.from_buffers(kind, len(x), [None, arrow.py_buffer(buffer)])


def _parquet_write(path: Path, pieces: Iterable[Piece]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    with path.open("wb") as file, ExitStack() as stack, ThreadPoolExecutor(1) as other:
        writer, written = None, None
        for parts, extra in pieces:
            columns = {name: _to_arrow(x) for name, x in _columns(parts, extra).items()}
            table = arrow.table(columns)
            if writer is None:
                # Numbers hardly ever repeat, and looking for repetitions takes most of the time.
                texts = [field.name for field in table.schema if field.type == arrow.string()]
                options = {"use_dictionary": texts, "write_page_checksum": True}
                writer = stack.enter_context(parquet.ParquetWriter(file, table.schema, **options))
            if written is not None:
                written.result()
            written = other.submit(writer.write_table, table)  # while the next piece is made
        if written is not None:
            written.result()


READERS: dict[str, Callable[[Path, Columns], Parts]] = {
    ".npz": _npz_read,
    ".npy": _npy_read,
    ".csv": _csv_read,
    ".parquet": _parquet_read,
}
WRITERS: dict[str, Callable[[Path, Iterable[Piece]], None]] = {
    ".npz": _npz_write,
    ".csv": _csv_write,
    ".parquet": _parquet_write,
}
READABLE, WRITABLE = tuple(READERS), tuple(WRITERS)
