"""The formats of scores files: npz, npy, csv, parquet and safetensors.

Reading gives :class:`Parts`, arrays as the file has them; :mod:`shiftcal.scores` makes consistent
scores of them. Nothing is ever unpickled.
"""

from __future__ import annotations

import csv
import difflib
import json
import math
import os
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError, require, suggest
from shiftcal.files import (
    PARQUET,
    npz_array,
    open_npz,
    open_parquet,
    parquet_table,
    parsing,
    read_npy,
    read_npz,
)
from shiftcal.types import InputKind

KINDS: tuple[InputKind, InputKind] = ("logits", "probabilities")
OPTIONAL = ("labels", "features", "ids", "classes")
LABEL, ID = "label", "id"
# Columns that say which sample a row is of; the first that is there, or that fits, counts.
KEYS = ("file", "path", ID)
PREFIX = {"logits": "logit_", "probabilities": "probability_", "features": "feature_"}
# The second name of a part is the one research code gives it: x_output, x_label, x_feature.
_ENDINGS = {
    "logits": ("logits", "output"),
    "probabilities": ("probabilities",),
    "labels": ("labels", "label"),
    "features": ("features", "feature"),
    "ids": ("ids",),
    "classes": ("classes",),
}
# Above this many bytes the array stays on disk and its pages are read as they are used.
_MAPPED_FROM = 64 << 20
# The colon of a drive, as in C:\\x.npz, stands before the ending and not behind it.
_MEMBER = re.compile(r"(.+\.npz):(.+)", re.IGNORECASE | re.DOTALL)
_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
# Rows turned into Python objects at one time when writing a table of text.
_BLOCK = 1 << 12
# Shorter names have too many innocent neighbours: 'idx' is not a mistyped 'id'.
_SHORTEST, _ALIKE = 5, 0.8
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


def read_parts(path: Path) -> Parts:
    """The parts of a scores file; its suffix says the format.

    Raises:
        FileError: If it is damaged, of another kind, or contradicts itself.
    """
    return _READERS[suffix_of(path, READABLE)](path)


def write_parts(path: Path, suffix: str, parts: Parts, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write a scores file of the format that ``suffix`` says, with further arrays ``(n,)``."""
    _WRITERS[suffix](path, parts, extra)


def suffix_of(path: Path, suffixes: tuple[str, ...]) -> str:
    """The suffix of the file in lower case.

    Raises:
        FileError: If it is not one of ``suffixes``.
    """
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        tabs = " Save it with commas, as .csv." if suffix == ".tsv" else ""
        raise FileError(
            f"{path} must end in the suffix of its format; got {path.suffix!r}."
            f"{tabs or ' ' + suggest(suffix, suffixes)}"
        )
    return suffix


def is_empty(cell: Any) -> bool:
    """Whether a cell of a table holds nothing: ``None``, NaN or ``""``."""
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def text_of(cells: Sequence[Any]) -> list[str]:
    """Cells as text, empty where they are empty."""
    return ["" if is_empty(cell) else str(cell) for cell in cells]


def _from_arrays(path: Path, names: Collection[str], load: Callable[[str], NDArray[Any]]) -> Parts:
    """Parts of a file of named arrays; only those that are used are loaded."""
    kind = the_kind(path, names)
    check_spelling(path, names, OPTIONAL)
    return Parts(kind, load(kind), **{name: load(name) for name in OPTIONAL if name in names})


def the_kind(path: Path, names: Collection[str]) -> InputKind:
    """Which of the two kinds of scores is among the names of a file's arrays.

    Raises:
        FileError: If none is, or both.
    """
    found = [kind for kind in KINDS if kind in names]
    if len(found) == 2:
        raise FileError(
            f"{path} holds both logits and probabilities, and only one of them can be meant. "
            "Leave the other out."
        )
    if not found:
        raise FileError(
            f"{path} must hold 'logits' (before softmax) or 'probabilities' (after it); it holds "
            f"{listed(sorted(names))}. Save the scores under the name that says what they are."
        )
    return found[0]


def check_spelling(path: Path, found: Iterable[str], expected: Sequence[str]) -> None:
    """Raise if an expected name that is absent seems to be there in another spelling."""
    names = list(found)
    for wanted in expected:
        for name in names:
            if wanted not in names and name not in expected and _is_near(name, wanted):
                raise FileError(_misspelt(path, name, wanted))


def _is_near(name: str, expected: str) -> bool:
    """Whether ``name`` is ``expected`` in other case or number, or with a letter or two wrong."""
    a, b = name.strip().casefold(), expected.casefold()
    if name == expected or a.removesuffix("s") == b.removesuffix("s"):
        return name != expected
    ratio = difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()
    return len(expected) >= _SHORTEST and ratio >= _ALIKE


def _misspelt(path: Path, name: str, wanted: str) -> str:
    return (
        f"{path} holds {name!r}, which is not read. Did you mean {wanted!r}? "
        "Rename it, or leave it out if it is something else."
    )


def listed(names: Sequence[str]) -> str:
    """The first few names, for a message about a file that lacks one."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(repr, names[:_LISTED])) + more or "nothing"


def _numbers(parts: Parts, extra: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every array of numbers by its name, contiguous, in the machine's byte order."""
    given = {parts.kind: parts.values, "labels": parts.labels, "features": parts.features, **extra}
    plain = {}
    for name, x in given.items():
        if isinstance(x, np.ndarray):  # labels are written as int64 on every machine
            dtype = np.dtype(np.int64) if x.dtype.kind == "i" else x.dtype.newbyteorder("=")
            plain[name] = np.ascontiguousarray(x, dtype=dtype)
    return plain


# --------------------------------------------------------------------------------------
# .npz and .npy: arrays by name, in one file or in several.
# --------------------------------------------------------------------------------------


def _npz_read(path: Path) -> Parts:
    with open_npz(path) as archive:
        return _from_arrays(path, archive.files, lambda name: npz_array(archive, name))


def _npz_write(path: Path, parts: Parts, extra: Mapping[str, NDArray[Any]]) -> None:
    texts = {"ids": parts.ids, "classes": parts.classes}
    arrays = {name: np.asarray(x, dtype=np.str_) for name, x in texts.items() if x is not None}
    with path.open("wb") as file:  # given a name, numpy would add a suffix of its own
        np.savez(file, **_numbers(parts, extra), **arrays)  # type: ignore[arg-type]


def read_member(path: Path, name: str) -> NDArray[Any] | None:
    """One array of an archive that need not hold scores; ``None`` if it is not there."""
    return read_npz(path, [name]).get(name)


def member_of(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """The file and the key of ``FILE.npz:KEY``; any other path, or an existing one, has no key."""
    text = os.fspath(path)
    parts = None if Path(text).exists() else _MEMBER.fullmatch(text)
    return (Path(text), None) if parts is None else (Path(parts[1]), parts[2])


def named_member(path: Path, key: str | None, *, default: str | None = None) -> NDArray[Any]:
    """The array of that name.

    Args:
        path: The archive.
        key: Name of the array.
        default: Its name if no key was given; ``None`` if there must be one.

    Raises:
        FileError: If it is not there, with the names that are.
    """
    name = default if key is None else key
    with open_npz(path) as archive:
        if name is not None and name in archive.files:
            return npz_array(archive, name)
        names = list(archive.files)
    what = "which of its arrays is meant must be said" if name is None else f"no array {name!r}"
    how = f" Name one as {path.name}:{names[0]}." if names else ""
    raise FileError(f"{path}: {what}; it holds {listed(names)}.{how}")


def _npy_read(path: Path) -> Parts:
    """From ``x_logits.npy`` (or ``x.npy``) and its siblings ``x_labels.npy`` and so on."""
    part, ending = _part(path)
    if part in OPTIONAL:
        raise FileError(
            f"{path} is named as the {part} of a set; name the file with its scores, "
            f"such as {path.stem.removesuffix(ending)}logits.npy."
        )
    stem = path.stem.removesuffix(ending) if ending else f"{path.stem}_"
    files = {part or "logits": path}
    for name in OPTIONAL:
        siblings = [path.with_name(f"{stem}{end}{path.suffix}") for end in _ENDINGS[name]]
        found = [file for file in siblings if file.is_file()]
        if len(found) > 1:
            raise FileError(
                f"{path} has both {found[0].name} and {found[1].name} next to it, and only one can "
                f"hold its {name}. Move the other away."
            )
        if found:
            files[name] = found[0]
    return _from_arrays(path, files, lambda name: read_array(files[name]))


def _part(path: Path) -> tuple[str, str]:
    """What the name of an ``.npy`` file says it holds, and its ending; empty if it says nothing."""
    for part, endings in _ENDINGS.items():
        for ending in endings:
            if f"_{path.stem}".endswith(f"_{ending}"):
                return part, ending
    return "", ""


def is_part(path: Path, parts: Collection[str] = OPTIONAL) -> bool:
    """Whether an ``.npy`` file holds labels or the like by its name, and scores are elsewhere."""
    return path.suffix.lower() == ".npy" and _part(path)[0] in parts


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
    classes: tuple[str, ...] | None  # None if they are numbered or in a list column
    texts: tuple[str, ...]  # the columns of labels and ids that are there
    id: str | None  # the column of ids: id, or else file or path

    def parts(
        self,
        matrix: Callable[[Sequence[str]], NDArray[Any]],
        cells: Mapping[str, list[Any]],
    ) -> Parts:
        return Parts(
            self.kind,
            matrix(self.scores),
            cells.get(LABEL),
            matrix(self.features) if self.features else None,
            None if self.id is None else text_of(cells[self.id]),
            self.classes,
        )


def _layout_of(path: Path, names: Sequence[str], lists: Collection[str] = ()) -> _Layout:
    """Find the columns of scores, features, labels and ids by their names.

    Args:
        path: The file, for messages.
        names: Names of all columns.
        lists: Those of ``logits``, ``probabilities`` and ``features`` that are list columns.
    """
    groups: dict[str, list[str]] = {}
    for what, prefix in PREFIX.items():
        groups[what] = [name for name in names if name.startswith(prefix)]
        if what in lists:
            if groups[what]:
                raise FileError(
                    f"{path} holds {what} both as the list column {what!r} and in columns such as "
                    f"{groups[what][0]!r}. Leave one of the two out."
                )
            groups[what] = [what]
    _check_column_names(path, names, groups, lists)
    found = [kind for kind in KINDS if groups[kind]]
    if len(found) != 1:
        raise FileError(
            f"{path} must have columns logit_<class> or probability_<class>, one per class and not "
            f"both kinds; its columns are {listed(names)}. Name them in the first line."
        )
    kind = found[0]
    scores, prefix = groups[kind], PREFIX[kind]
    suffixes = [name.removeprefix(prefix) for name in scores]
    numbered = kind in lists or set(suffixes) == {str(i) for i in range(len(suffixes))}
    id_column = next((name for name in (ID, *KEYS) if name in names), None)
    layout = _Layout(
        kind,
        _in_order(scores, prefix) if numbered else tuple(scores),
        _in_order(groups["features"], PREFIX["features"]),
        None if numbered else tuple(suffixes),
        tuple(name for name in (LABEL, id_column) if name and name in names),
        id_column,
    )
    if kind not in lists and len(scores) < 2:
        raise FileError(
            f"{path} must have a column per class and at least two; it has only {scores[0]!r}. "
            "For a binary probability p, write probability_0 = 1 - p and probability_1 = p."
        )
    _check_once(path, names, (*layout.scores, *layout.features, *layout.texts))
    return layout


def _check_column_names(
    path: Path, names: Sequence[str], groups: Mapping[str, list[str]], lists: Collection[str]
) -> None:
    check_spelling(path, names, (LABEL, ID))
    known = {name for group in groups.values() for name in group}
    for name in names:
        stem, underscore, suffix = name.partition("_")
        for what, prefix in PREFIX.items():
            near = underscore and name not in known and what not in lists
            if near and _is_near(stem, prefix[:-1]):
                raise FileError(_misspelt(path, name, prefix + suffix))


def _check_once(path: Path, names: Sequence[str], used: Sequence[str]) -> None:
    for name in used:
        if names.count(name) > 1:
            raise FileError(f"{path} has the column {name!r} twice; leave one out.")


def _in_order(names: Sequence[str], prefix: str) -> tuple[str, ...]:
    """By number where all are numbered, since tables are often sorted as 0, 1, 10, 2."""

    def number(name: str) -> tuple[int, str]:  # sorts as int() does, for any number of digits
        digits = name.removeprefix(prefix).lstrip("0")
        return len(digits), digits

    suffixes = [name.removeprefix(prefix) for name in names]
    numbered = all(suffix.isascii() and suffix.isdigit() for suffix in suffixes)
    return tuple(sorted(names, key=number) if numbered else names)


def _columns(parts: Parts, extra: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every column to write, by name and in order; classes by their names where they have any."""
    names = None if parts.classes is None else np.array(parts.classes, dtype=np.str_)
    columns: dict[str, Any] = {ID: parts.ids, LABEL: parts.labels, **extra}
    for name in (LABEL, "predicted"):
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
    with open_table(path) as (names, lists, table):
        check_spelling(path, names, wanted)
        _check_once(path, names, wanted)
        cells = table([name for name in wanted if name in names])
    scored = any(name in KINDS or name.startswith(("logit_", "probability_")) for name in names)
    return cells, _layout_of(path, names, lists).classes if scored else None


@contextmanager
def open_table(
    path: Path,
) -> Iterator[tuple[list[str], set[str], Callable[[Sequence[str]], dict[str, list[Any]]]]]:
    """Names of the columns, those with lists, and a function that gives the cells of some."""
    if path.suffix.lower() == ".parquet":
        with open_parquet(path) as file:
            schema = file.schema_arrow
            yield (
                schema.names,
                _lists(schema),
                lambda some: parquet_table(path, file, some).to_pydict(),
            )
        return
    with _csv_rows(path) as (names, rows):

        def cells(some: Sequence[str]) -> dict[str, list[Any]]:
            at = [names.index(name) for name in some]
            filled = [[row[i] if i < len(row) else "" for i in at] for _, row in rows]
            columns = zip(*filled, strict=True) if filled else [()] * len(at)
            return {name: list(column) for name, column in zip(some, columns, strict=True)}

        yield names, set(), cells


@contextmanager
def _csv_rows(path: Path, *, full: bool = False) -> Iterator[tuple[list[str], Any]]:
    """The header of a table of text, and its rows.

    Args:
        path: The file.
        full: Whether rows must have a cell for every column; else they may be short.
    """
    with (
        parsing(path, "comma-separated text in UTF-8"),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        first = file.readline()
        for delimiter, word in _DELIMITERS.items():
            if delimiter in first and "," not in first:
                raise FileError(
                    f"{path} must be separated by commas; this one is separated by {word}. "
                    "Save it with commas, and decimal points in the numbers."
                )
        lines = csv.reader(chain([first], file), strict=True, skipinitialspace=True)
        names = next(filter(None, lines), [])

        def rows() -> Iterator[tuple[int, list[str]]]:
            for row in filter(None, lines):
                if len(row) > len(names) or (full and len(row) < len(names)):
                    raise FileError(
                        f"{path}, line {lines.line_num}: every row must have {len(names)} cells, "
                        f"as the first line has; this one has {len(row)}. The file may be cut "
                        "short, or a comma may stand in an unquoted cell."
                    )
                yield lines.line_num, row

        yield names, rows()


def _csv_read(path: Path) -> Parts:
    with _csv_rows(path, full=True) as (names, rows):
        layout = _layout_of(path, names)
        wanted = [*layout.scores, *layout.features]
        numbers, texts = itemgetter(*map(names.index, wanted)), dict[str, list[Any]]()
        at = [(names.index(name), texts.setdefault(name, [])) for name in layout.texts]
        values = array("d")
        for line, row in rows:
            try:
                values.extend(map(_number, numbers(row)))
            except ValueError:
                bad = next(name for name in wanted if not _is_number(row[names.index(name)]))
                raise FileError(
                    f"{path}, line {line}: column {bad!r} must hold numbers, with a decimal point; "
                    f"got {row[names.index(bad)][:40]!r}."
                ) from None
            for i, cells in at:
                cells.append(row[i])
        table = np.array(values, dtype=np.float64).reshape(-1, len(wanted))
    k = len(layout.scores)
    return layout.parts(
        lambda some: np.ascontiguousarray(table[:, :k] if some is layout.scores else table[:, k:]),
        texts,
    )


def _number(cell: str) -> float:
    if "_" in cell or not cell.isascii():  # 1_0 is a number to Python, and to few others
        raise ValueError(cell)
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _csv_write(path: Path, parts: Parts, extra: Mapping[str, NDArray[Any]]) -> None:
    columns = _columns(parts, extra)
    with path.open("w", encoding="utf-8", newline="") as file:
        # Quoting all text keeps blanks, line ends and numbers-as-names what they are.
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(columns)
        for start in range(0, len(parts.values), _BLOCK):
            block = [column[start : start + _BLOCK].tolist() for column in columns.values()]
            writer.writerows(zip(*block, strict=True))


def _parquet_read(path: Path) -> Parts:
    with open_parquet(path) as file:
        schema = file.schema_arrow
        layout = _layout_of(path, schema.names, _lists(schema))
        table = parquet_table(path, file, [*layout.scores, *layout.features, *layout.texts])
    return table_parts(path, table)


def table_parts(path: Path, table: Any, *, kind: str = PARQUET) -> Parts:
    """Parts of a table of pyarrow's.

    Args:
        path: Where it came from, for messages.
        table: The table.
        kind: What that is, such as ``"a Parquet file"``.
    """
    lists = _lists(table.schema)
    layout = _layout_of(path, table.schema.names, lists)

    def matrix(names: Sequence[str]) -> NDArray[Any]:
        if names[0] in lists:
            return _from_lists(path, table.column(names[0]), names[0])
        columns = [_column(path, table.column(name), name) for name in names]
        out = np.empty((table.num_rows, len(columns)), dtype=np.result_type(*columns))
        for i, column in enumerate(columns):
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
    _column(path, column, name, flat=False)
    lengths = np.unique(_pyarrow("pyarrow.compute").list_value_length(column))
    if len(lengths) > 1:
        raise FileError(
            f"{path}: every list in column {name!r} must have the same length; they have "
            f"{lengths[0]} to {lengths[-1]}."
        )
    flat = [_column(path, chunk.flatten(), name) for chunk in column.chunks]
    return np.concatenate([*flat, np.empty(0, np.float16)]).reshape(len(column), *lengths)


def _column(path: Path, column: Any, name: str, *, flat: bool = True) -> NDArray[Any]:
    if column.null_count:
        raise FileError(
            f"{path}: column {name!r} must have a number in every row; {column.null_count} are "
            "missing. Drop those rows."
        )
    values: NDArray[Any] = np.asarray(column) if flat else np.empty(0)
    if values.dtype.kind not in "iuf":
        raise FileError(f"{path}: column {name!r} must hold numbers; it holds {column.type}.")
    return values


def _parquet_write(path: Path, parts: Parts, extra: Mapping[str, NDArray[Any]]) -> None:
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    columns = {}
    for name, x in _columns(parts, extra).items():
        text = x.dtype.kind == "U"  # and numbers in the machine's byte order, for pyarrow
        columns[name] = x.tolist() if text else x.astype(x.dtype.newbyteorder("="), copy=False)
    with path.open("wb") as file:
        parquet.write_table(arrow.table(columns), file, write_page_checksum=True)


# --------------------------------------------------------------------------------------
# .safetensors: named tensors, with text in the header.
# --------------------------------------------------------------------------------------


def _safetensors_read(path: Path) -> Parts:
    from safetensors import safe_open

    with parsing(path, "a .safetensors file"), safe_open(path, framework="numpy") as file:
        names = set(file.keys())
        arrays: dict[str, NDArray[Any]] = {}
        for name in names.intersection((*KINDS, *OPTIONAL)):
            dtype = file.get_slice(name).get_dtype()
            if not re.fullmatch("F64|F32|F16|BOOL|[IU](8|16|32|64)", dtype):
                raise FileError(
                    f"{path} holds {name} as {dtype}, which is not read. Save them as F32."
                )
            arrays[name] = file.get_tensor(name)
        texts = file.metadata() or {}
    for name in ("ids", "classes"):
        if name in texts:
            arrays[name] = _names(path, name, texts[name])
    return _from_arrays(path, names | arrays.keys(), arrays.__getitem__)


def _names(path: Path, name: str, text: str) -> NDArray[np.str_]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise FileError(
            f"{path} must hold {name} as a JSON list of strings in its metadata; "
            f"it holds {text[:40]!r}."
        )
    return np.array(given, dtype=np.str_)


def _safetensors_write(path: Path, parts: Parts, extra: Mapping[str, NDArray[Any]]) -> None:
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    texts = {
        name: json.dumps(np.asarray(given).tolist(), ensure_ascii=False)
        for name, given in (("ids", parts.ids), ("classes", parts.classes))
        if given is not None
    }
    mode = path.stat().st_mode
    try:
        save_file(_numbers(parts, extra), path, metadata=texts or None)
        # The library may put a file of its own there, which only its owner can read.
        path.chmod(mode)
    except SafetensorError as error:
        # A full disk comes out of the library as an error of its own kind.
        raise OSError(str(error)) from error


_READERS: dict[str, Callable[[Path], Parts]] = {
    ".npz": _npz_read,
    ".npy": _npy_read,
    ".csv": _csv_read,
    ".parquet": _parquet_read,
    ".safetensors": _safetensors_read,
}
_WRITERS: dict[str, Callable[[Path, Parts, Mapping[str, NDArray[Any]]], None]] = {
    ".npz": _npz_write,
    ".csv": _csv_write,
    ".parquet": _parquet_write,
    ".safetensors": _safetensors_write,
}
READABLE, WRITABLE = tuple(_READERS), tuple(_WRITERS)
