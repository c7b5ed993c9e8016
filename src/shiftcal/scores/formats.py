"""Scores read from and written to npz, npy, csv, parquet and safetensors files."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_confidence, check_features, check_labels
from shiftcal.errors import FileError, InputError, require
from shiftcal.files import (
    PARQUET,
    atomic_write,
    find,
    npz_array,
    open_npz,
    open_parquet,
    parquet_table,
    parsing,
    read_npy,
)
from shiftcal.registry import suggest
from shiftcal.scores.scores import (
    KINDS,
    OPTIONAL,
    Scores,
    assemble,
    from_arrays,
    is_near_miss,
    listed,
    mistyped,
    refuse_near_misses,
    text_of,
)
from shiftcal.types import Floats, InputKind

# --------------------------------------------------------------------------------------
# Scores as named arrays, for the formats that hold such.
# --------------------------------------------------------------------------------------


def numbers_of(scores: Scores, extra: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every array of numbers by its name, contiguous and in the machine's byte order."""
    parts = {scores.input: scores.values, "labels": scores.labels, "features": scores.features}
    given = {name: part for name, part in parts.items() if part is not None}
    return {name: _plain(part) for name, part in {**given, **extra}.items()}


def _plain(x: NDArray[Any]) -> NDArray[Any]:
    # Labels are written as int64 on every machine.
    dtype = np.dtype(np.int64) if x.dtype.kind == "i" else x.dtype.newbyteorder("=")
    return np.ascontiguousarray(x, dtype=dtype)


# --------------------------------------------------------------------------------------
# Scores as columns of a table: what the columns are called, read and written.
# --------------------------------------------------------------------------------------

LABEL, ID = "label", "id"
# Columns that say which sample a row is of; the first that is there, or that fits, counts.
KEYS = ("file", "path", ID)
PREFIX = {"logits": "logit_", "probabilities": "probability_", "features": "feature_"}


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are what.

    Attributes:
        kind: What the scores are.
        scores: Their columns in the order of the classes, or the one list column.
        features: Columns of features in order, or the one list column; may be empty.
        classes: Names of the classes; ``None`` if they are numbered or in a list column.
        texts: The columns of labels and ids that are there.
        id: The column of ids: ``id``, or else ``file`` or ``path``.
    """

    kind: InputKind
    scores: tuple[str, ...]
    features: tuple[str, ...]
    classes: tuple[str, ...] | None
    texts: tuple[str, ...]
    id: str | None


def layout_of(path: Path, names: Sequence[str], *, lists: Collection[str] = ()) -> Layout:
    """Find the columns of scores, features, labels and ids by their names.

    Args:
        path: The file, for messages.
        names: Names of all columns.
        lists: Those of ``logits``, ``probabilities`` and ``features`` that are list columns.

    Raises:
        FileError: If scores are absent or ambiguous, or a name is repeated or mistyped.
    """
    groups = {what: _group(path, names, what, what in lists) for what in PREFIX}
    _refuse_mistyped(path, names, groups, lists)
    kind = _kind(path, names, groups)
    scores = groups[kind]
    suffixes = [name.removeprefix(PREFIX[kind]) for name in scores]
    numbered = kind in lists or set(suffixes) == {str(i) for i in range(len(suffixes))}
    id_column = next((name for name in (ID, *KEYS) if name in names), None)
    layout = Layout(
        kind=kind,
        scores=_in_order(scores, PREFIX[kind]) if numbered else tuple(scores),
        features=_in_order(groups["features"], PREFIX["features"]),
        classes=None if numbered else tuple(suffixes),
        texts=tuple(name for name in (LABEL, id_column) if name and name in names),
        id=id_column,
    )
    if kind not in lists and len(scores) < 2:
        raise FileError(
            f"{path} must have a column per class and at least two; it has only {scores[0]!r}. "
            "For a binary probability p, write probability_0 = 1 - p and probability_1 = p."
        )
    refuse_repeated(path, names, (*layout.scores, *layout.features, *layout.texts))
    return layout


def refuse_repeated(path: Path, names: Sequence[str], used: Sequence[str]) -> None:
    """Raise if a column that is read is there twice; others may be.

    Raises:
        FileError: Naming it.
    """
    for name in used:
        if names.count(name) > 1:
            raise FileError(f"{path} has the column {name!r} twice; leave one out.")


def _group(path: Path, names: Sequence[str], what: str, is_list: bool) -> list[str]:
    columns = [name for name in names if name.startswith(PREFIX[what])]
    if is_list and columns:
        raise FileError(
            f"{path} holds {what} both as the list column {what!r} and in columns such as "
            f"{columns[0]!r}. Leave one of the two out."
        )
    return [what] if is_list else columns


def _kind(path: Path, names: Sequence[str], groups: Mapping[str, Sequence[str]]) -> InputKind:
    found = [kind for kind in KINDS if groups[kind]]
    if len(found) == 2:
        raise FileError(
            f"{path} has columns of both logits ({groups['logits'][0]!r}) and probabilities "
            f"({groups['probabilities'][0]!r}), and only one of them can be meant. "
            "Leave the other out."
        )
    if not found:
        raise FileError(
            f"{path} must have columns logit_<class> or probability_<class>, one per class; "
            f"its columns are {listed(names)}. Name them in the first line."
        )
    return found[0]


def _refuse_mistyped(
    path: Path, names: Sequence[str], groups: Mapping[str, Sequence[str]], lists: Collection[str]
) -> None:
    refuse_near_misses(path, names, (LABEL, ID))
    known = {name for group in groups.values() for name in group}
    for name in names:
        stem, underscore, suffix = name.partition("_")
        if name in known or not underscore:
            continue
        for what, prefix in PREFIX.items():
            if what not in lists and is_near_miss(stem, prefix[:-1]):
                raise FileError(mistyped(path, name, prefix + suffix))


def _in_order(names: Sequence[str], prefix: str) -> tuple[str, ...]:
    """By number where all are numbered, since tables are often sorted as 0, 1, 10, 2."""
    suffixes = [name.removeprefix(prefix) for name in names]
    if all(suffix.isascii() and suffix.isdigit() for suffix in suffixes):
        return tuple(sorted(names, key=lambda name: _as_number(name.removeprefix(prefix))))
    return tuple(names)


def _as_number(digits: str) -> tuple[int, str]:
    """Sorts as the number does, of any length: Python turns no more than 4,300 digits into one."""
    digits = digits.lstrip("0")
    return len(digits), digits


def columns_of(scores: Scores, extra: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every column to write, by name and in order; classes by their names where they have any."""
    columns: dict[str, NDArray[Any]] = {}
    if scores.ids is not None:
        columns[ID] = scores.ids
    if scores.labels is not None:
        columns[LABEL] = _named(scores.labels, scores.classes)
    for name, values in extra.items():
        columns[name] = _named(values, scores.classes) if name == "predicted" else values
    suffixes = scores.classes or [str(i) for i in range(scores.k)]
    for i, suffix in enumerate(suffixes):
        columns[PREFIX[scores.input] + suffix] = scores.values[:, i]
    if scores.features is not None:
        for i in range(scores.features.shape[1]):
            columns[f"{PREFIX['features']}{i}"] = scores.features[:, i]
    return columns


def _named(indices: NDArray[Any], classes: Sequence[str] | None) -> NDArray[Any]:
    return indices if classes is None else np.array(classes, dtype=np.str_)[indices]


# --------------------------------------------------------------------------------------
# ``.csv``: a table of text, for small sets and for looking at.
# --------------------------------------------------------------------------------------

_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
# Rows turned into Python objects at one time when writing.
_BLOCK = 1 << 12


def csv_read(path: Path) -> Scores:
    """Scores from the columns of a comma-separated table in UTF-8."""
    with (
        parsing(path, "comma-separated text in UTF-8"),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        first = file.readline()
        _refuse_other_delimiters(path, first)
        rows = csv.reader(chain([first], file), strict=True, skipinitialspace=True)
        names = next(filter(None, rows), [])
        layout = layout_of(path, names)
        texts: dict[str, list[str]] = {name: [] for name in layout.texts}
        wanted = [names.index(name) for name in (*layout.scores, *layout.features)]
        table = _numbers(path, rows, names, wanted=wanted, texts=texts)
    k = len(layout.scores)
    return assemble(
        path,
        layout.kind,
        np.ascontiguousarray(table[:, :k]),
        labels=texts.get(LABEL),
        features=np.ascontiguousarray(table[:, k:]) if layout.features else None,
        ids=None if layout.id is None else texts[layout.id],
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


def csv_write(path: Path, scores: Scores, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write one row per sample; text is quoted, and numbers have all their digits."""
    columns = columns_of(scores, extra)
    with path.open("w", encoding="utf-8", newline="") as file:
        # Quoting all text keeps blanks, line ends and numbers-as-names what they are.
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(columns)
        for start in range(0, scores.n, _BLOCK):
            block = [column[start : start + _BLOCK].tolist() for column in columns.values()]
            writer.writerows(zip(*block, strict=True))


# --------------------------------------------------------------------------------------
# ``.npy``: one array a file, the parts of a set told by the ends of their names.
# --------------------------------------------------------------------------------------

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


def npy_read(path: Path) -> Scores:
    """Scores from ``x_logits.npy`` (or ``x.npy``) and its siblings ``x_labels.npy`` and so on."""
    kind, stem = _part(path)
    files = {kind: path}
    for name in OPTIONAL:
        found = _sibling(path, stem, name)
        if found is not None:
            files[name] = found
    return from_arrays(path, files, lambda name: read_array(files[name]))


def _part(path: Path) -> tuple[str, str]:
    """What the file's name says it holds, and the beginning its siblings share with it."""
    for part, endings in _ENDINGS.items():
        for ending in endings:
            if path.stem != ending and not path.stem.endswith(f"_{ending}"):
                continue
            if part in OPTIONAL:
                raise FileError(
                    f"{path} is named as the {part} of a set; name the file with its scores, "
                    f"such as {path.stem.removesuffix(ending)}logits.npy."
                )
            return part, path.stem.removesuffix(ending)
    return "logits", f"{path.stem}_"


def _sibling(path: Path, stem: str, part: str) -> Path | None:
    names = [path.with_name(f"{stem}{ending}{path.suffix}") for ending in _ENDINGS[part]]
    found = [name for name in names if name.is_file()]
    if len(found) > 1:
        raise FileError(
            f"{path} has both {found[0].name} and {found[1].name} beside it, and only one can "
            f"hold its {part}. Move the other away."
        )
    return found[0] if found else None


def is_part(path: Path) -> bool:
    """Whether the file's name says that it holds labels or the like, and scores are elsewhere."""
    endings = tuple(ending for part in OPTIONAL for ending in _ENDINGS[part])
    return path.suffix.lower() == ".npy" and f"_{path.stem}".endswith(
        tuple(f"_{ending}" for ending in endings)
    )


def holds_features(path: Path) -> bool:
    """Whether the file's name says that it holds features."""
    return path.stem.rpartition("_")[2] in _ENDINGS["features"]


def read_array(path: Path) -> NDArray[Any]:
    """The array, on disk if it is large."""
    return read_npy(path, mapped=path.stat().st_size >= _MAPPED_FROM)


# --------------------------------------------------------------------------------------
# ``.npz``: numpy's archive of named arrays.
# --------------------------------------------------------------------------------------

# The colon of a drive, as in C:\\x.npz, stands before the ending and not behind it.
_MEMBER = re.compile(r"(.+\.npz):(.+)", re.IGNORECASE | re.DOTALL)


def npz_read(path: Path) -> Scores:
    """Scores from the arrays ``logits`` or ``probabilities``, ``labels`` and so on."""
    with open_npz(path) as archive:
        return from_arrays(path, archive.files, lambda name: npz_array(archive, name))


def read_member(path: Path, name: str) -> NDArray[Any] | None:
    """One array of an archive that need not hold scores; ``None`` if it is not there."""
    with open_npz(path) as archive:
        return npz_array(archive, name) if name in archive.files else None


def member_of(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """The file and the key of ``FILE.npz:KEY``; any other path has no key.

    A file of that very name is the path it is.
    """
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


def npz_write(path: Path, scores: Scores, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write every part under its name, uncompressed: scores hardly shrink."""
    arrays = numbers_of(scores, extra)
    if scores.ids is not None:
        arrays["ids"] = scores.ids
    if scores.classes is not None:
        arrays["classes"] = np.array(scores.classes, dtype=np.str_)
    # Given a name, numpy would add a suffix of its own.
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------
# ``.parquet``: a table with types, by pyarrow.
# --------------------------------------------------------------------------------------

_OF_SCORES = tuple(PREFIX[kind] for kind in KINDS)
_pyarrow = partial(require, extra="parquet", needed_by="a .parquet file")


def parquet_read(path: Path) -> Scores:
    """Scores from the columns a ``.csv`` has, or from list columns ``logits`` and so on."""
    with open_parquet(path) as file:
        layout = _layout(path, file.schema_arrow)
        table = parquet_table(path, file, [*layout.scores, *layout.features, *layout.texts])
    return scores_of(path, table, kind=PARQUET)


def scores_of(path: Path, table: Any, *, kind: str) -> Scores:
    """Scores from a table of pyarrow's with such columns.

    Args:
        path: Where it came from, for messages.
        table: The table.
        kind: What that is, such as ``"a Parquet file"``.
    """
    layout = _layout(path, table.schema)
    lists = _lists(table.schema)
    with parsing(path, kind):
        parts: dict[str, Any] = {
            name: _matrix(path, table, names, name in lists)
            for name, names in ((layout.kind, layout.scores), ("features", layout.features))
            if names
        }
        cells = {name: table.column(name).to_pylist() for name in layout.texts}
    return assemble(
        path,
        layout.kind,
        parts[layout.kind],
        labels=cells.get(LABEL),
        features=parts.get("features"),
        ids=None if layout.id is None else text_of(cells[layout.id]),
        classes=layout.classes,
    )


def _layout(path: Path, schema: Any) -> Layout:
    return layout_of(path, schema.names, lists=_lists(schema))


def _lists(schema: Any) -> set[str]:
    return {name for name in PREFIX if name in schema.names and _is_list(schema, name)}


def read_cells(
    path: Path, wanted: Sequence[str]
) -> tuple[dict[str, list[Any]], tuple[str, ...] | None]:
    """The cells of those columns that are there, and the classes if the table holds scores."""
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        refuse_near_misses(path, names, wanted)
        refuse_repeated(path, names, wanted)
        holds_scores = any(name in KINDS or name.startswith(_OF_SCORES) for name in names)
        classes = _layout(path, file.schema_arrow).classes if holds_scores else None
        table = parquet_table(path, file, [name for name in wanted if name in names])
        return {name: table.column(name).to_pylist() for name in table.column_names}, classes


def _is_list(schema: Any, name: str) -> bool:
    types, kind = _pyarrow("pyarrow").types, schema.field(name).type
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _matrix(path: Path, table: Any, names: Sequence[str], is_list: bool) -> NDArray[Any]:
    if is_list:
        return _from_lists(path, table.column(names[0]), names[0])
    columns = [_parquet_numbers(path, table.column(name), name) for name in names]
    out = np.empty((table.num_rows, len(columns)), dtype=np.result_type(*columns))
    for i, column in enumerate(columns):
        out[:, i] = column
    return out


def _from_lists(path: Path, column: Any, name: str) -> NDArray[Any]:
    _refuse_empty_cells(path, column, name)
    lengths = np.unique(_pyarrow("pyarrow.compute").list_value_length(column))
    if len(lengths) > 1:
        raise FileError(
            f"{path}: every list in column {name!r} must have the same length; they have "
            f"{lengths[0]} to {lengths[-1]}."
        )
    flat = [_parquet_numbers(path, chunk.flatten(), name) for chunk in column.chunks]
    return np.concatenate([*flat, np.empty(0, np.float16)]).reshape(len(column), *lengths)


def _parquet_numbers(path: Path, column: Any, name: str) -> NDArray[Any]:
    _refuse_empty_cells(path, column, name)
    values: NDArray[Any] = np.asarray(column)
    if values.dtype.kind not in "iuf":
        raise FileError(f"{path}: column {name!r} must hold numbers; it holds {column.type}.")
    return values


def _refuse_empty_cells(path: Path, column: Any, name: str) -> None:
    if column.null_count:
        raise FileError(
            f"{path}: column {name!r} must have a number in every row; {column.null_count} are "
            "missing. Drop those rows."
        )


def parquet_write(path: Path, scores: Scores, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write the columns a ``.csv`` has, in the types of the arrays."""
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    columns = {
        name: arrow.array(_parquet_plain(x)) for name, x in columns_of(scores, extra).items()
    }
    with path.open("wb") as file:
        parquet.write_table(arrow.table(columns), file, write_page_checksum=True)


def _parquet_plain(column: NDArray[Any]) -> Any:
    if column.dtype.kind == "U":
        return column.tolist()
    # pyarrow reads the machine's byte order only.
    return column.astype(column.dtype.newbyteorder("="), copy=False)


# --------------------------------------------------------------------------------------
# ``.safetensors``: named tensors, with text in the header.
# --------------------------------------------------------------------------------------

_TEXTS = ("ids", "classes")
_REAL = re.compile("F64|F32|F16|BF16|BOOL|[IU](8|16|32|64)")


def safetensors_read(path: Path) -> Scores:
    """Scores from tensors ``logits`` and so on; ``classes`` and ``ids`` are JSON in the header."""
    from safetensors import safe_open

    with parsing(path, "a .safetensors file"), safe_open(path, framework="numpy") as file:
        names = set(file.keys())
        header, start = _header(path)
        arrays: dict[str, NDArray[Any]] = {}
        for name in names.intersection((*KINDS, *OPTIONAL)):
            dtype = header[name]["dtype"]
            if not _REAL.fullmatch(dtype):
                raise FileError(
                    f"{path} holds {name} as {dtype}, which is not read. Save them as F32."
                )
            if dtype == "BF16":
                arrays[name] = _bfloat16(path, header[name], start)
            else:
                arrays[name] = file.get_tensor(name)
        texts = file.metadata() or {}
    for name in _TEXTS:
        if name in texts:
            arrays[name] = _names(path, name, texts[name])
    return from_arrays(path, names | arrays.keys(), arrays.__getitem__)


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


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The header, which the library has found to be sound, and where the data begin."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(size)), 8 + size


def _bfloat16(path: Path, entry: Mapping[str, Any], start: int) -> NDArray[np.float32]:
    """Float32 of the same values: numpy has no bfloat16, whose bits are a float32's upper half."""
    low, high = entry["data_offsets"]
    with path.open("rb") as file:
        file.seek(start + low)
        upper = np.frombuffer(file.read(high - low), dtype="<u2")
    return (upper.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])


def safetensors_write(path: Path, scores: Scores, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write numbers as tensors, text as JSON in the metadata."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    texts = {}
    if scores.ids is not None:
        texts["ids"] = json.dumps(scores.ids.tolist(), ensure_ascii=False)
    if scores.classes is not None:
        texts["classes"] = json.dumps(scores.classes, ensure_ascii=False)
    mode = path.stat().st_mode
    try:
        save_file(numbers_of(scores, extra), path, metadata=texts or None)
        # The library may put a file of its own there, which only its owner can read.
        path.chmod(mode)
    except SafetensorError as error:
        # A full disk comes out of the library as an error of its own kind.
        raise OSError(str(error)) from error


# --------------------------------------------------------------------------------------
# Which model scores came from, as far as they say so.
# --------------------------------------------------------------------------------------


def model_digest(origin: Mapping[str, Any] | None) -> str | None:
    """A digest of the model and its preprocessing; ``None`` if the origin does not say which.

    Args:
        origin: How a bank or a scores file was made.
    """
    try:
        model = origin["model"]  # type: ignore[index]
        told = [model["fingerprint"], model["preprocessing"]]
    except (KeyError, TypeError):
        return None
    return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()


def model_digest_of_file(path: Path) -> str | None:
    """The same of a scores file; ``None`` for those that were not written by ``shiftcal score``."""
    if path.suffix.lower() != ".npz":
        return None
    try:
        return model_digest(json.loads(str(read_member(path, "origin"))))
    except (FileError, ValueError, RecursionError):
        return None


# --------------------------------------------------------------------------------------
# Reading a scores file, whatever its format.
# --------------------------------------------------------------------------------------

# A suffix is also the name of the module that knows the format.


def read_scores(path: str | os.PathLike[str], *, normalize: bool = False) -> Scores:
    """The scores in a file; its suffix says the format.

    ``.npz``, ``.npy`` (with its siblings), ``.csv``, ``.parquet`` and ``.safetensors`` are read, as
    the page on file formats describes. Nothing is unpickled. Large ``.npy`` arrays stay on disk.

    Args:
        path: The file.
        normalize: Whether rows of probabilities are divided by their sum, as rounded ones must be;
            logits stay as they are.

    Raises:
        FileError: If it is missing, damaged, of another kind, or contradicts itself.
        MissingExtra: If the format needs a package that is not installed.
    """
    file = find(path)
    reader = _READERS[suffix_of(file, tuple(_READERS))]
    with parsing(file, "a scores file"):
        scores = reader(file)
        return replace(scores, normalize=True) if normalize else scores


def suffix_of(path: Path, suffixes: tuple[str, ...]) -> str:
    """The suffix of the file in lower case.

    Raises:
        FileError: If it is not one of ``suffixes``.
    """
    suffix = path.suffix.lower()
    if suffix == ".tsv":
        raise FileError(
            f"{path} must be separated by commas, not tabs. Save it with commas, as .csv."
        )
    if suffix not in suffixes:
        raise FileError(
            f"{path} must end in the suffix of its format; got {path.suffix!r}. "
            f"{suggest(suffix, suffixes)}"
        )
    return suffix


_READERS: dict[str, Callable[[Path], Scores]] = {
    ".npz": npz_read,
    ".npy": npy_read,
    ".csv": csv_read,
    ".parquet": parquet_read,
    ".safetensors": safetensors_read,
}
READABLE = tuple(_READERS)


# --------------------------------------------------------------------------------------
# Writing a scores file, whole or not at all.
# --------------------------------------------------------------------------------------

_WRITERS: dict[str, Callable[[Path, Scores, Mapping[str, NDArray[Any]]], None]] = {
    ".npz": npz_write,
    ".csv": csv_write,
    ".parquet": parquet_write,
    ".safetensors": safetensors_write,
}
WRITABLE = tuple(_WRITERS)


def write_scores(
    path: str | os.PathLike[str],
    scores: Scores,
    *,
    confidence: object = None,
    predicted: object = None,
    durable: bool = True,
) -> None:
    """Write scores to a file that :func:`read_scores` reads; the suffix says the format.

    An existing file is replaced in one step; whatever goes wrong, it stays as it was.

    Args:
        path: Where to, ending in ``.npz``, ``.csv``, ``.parquet`` or ``.safetensors``.
        scores: What to write.
        confidence: Confidence ``(n,)`` of the predicted class, written beside the scores.
        predicted: Predicted class ``(n,)`` as an index, likewise.
        durable: Whether the file outlives a power cut at once. Otherwise the system writes it
            within seconds, which is faster for many small files that can be made again.

    Raises:
        FileError: If the suffix is another, or the file cannot be written.
        MissingExtra: If the format needs a package that is not installed.
    """
    target = Path(path)
    if target.suffix.lower() == ".npy":
        raise FileError(
            f"{target} cannot be written: a .npy file holds one array. "
            f"Choose one of {', '.join(WRITABLE)}."
        )
    writer = _WRITERS[suffix_of(target, tuple(_WRITERS))]
    extra = {}
    if predicted is not None:
        extra["predicted"] = check_labels(predicted, n=scores.n, k=scores.k)
    if confidence is not None:
        extra["confidence"] = np.asarray(check_confidence(confidence))
        if len(extra["confidence"]) != scores.n:
            raise InputError(
                "confidence must have one entry per row: "
                f"{scores.n} rows, {len(extra['confidence'])} entries."
            )
    with atomic_write(target, durable=durable) as temporary:
        try:
            writer(temporary, scores, extra)
        except UnicodeEncodeError as error:
            raise FileError(
                f"{target} cannot be written: {error.object!r} among its ids or classes is not "
                "valid text. Replace the characters that UTF-8 cannot express."
            ) from error


# --------------------------------------------------------------------------------------
# Features alone, such as those of the training samples, whose scores nobody needs.
# --------------------------------------------------------------------------------------


def read_features(path: str | os.PathLike[str]) -> Floats:
    """The features ``(n, d)`` in a file.

    A ``.npy`` file whose name ends in ``features`` or ``feature`` is one array of them; an
    ``.npz`` file holds them under ``features`` and need hold nothing else; any other file is a
    scores file that has features.

    Raises:
        FileError: If the file cannot be read, or has no features that can be used.
    """
    file = find(path)
    features = _features_in(file)
    if features is None:
        raise FileError(
            f"{file} has no features. Save them under the name 'features', as an array (n, d)."
        )
    try:
        return check_features(features, name="features")
    except InputError as error:
        raise FileError(f"{file}: {error}") from error


def _features_in(file: Path) -> Floats | None:
    if file.suffix.lower() == ".npz":
        return read_member(file, "features")
    if file.suffix.lower() == ".npy" and holds_features(file):
        return read_array(file)
    return read_scores(file).features
