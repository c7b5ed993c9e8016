"""``.parquet``: a table with types, by pyarrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.errors import FileError
from shiftcal.scores._assemble import KINDS, assemble
from shiftcal.scores._columns import (
    ID,
    LABEL,
    PREFIX,
    Layout,
    columns_of,
    layout_of,
    refuse_repeated,
)
from shiftcal.scores._labels import text_of
from shiftcal.scores._opening import parsing, refuse_bomb
from shiftcal.scores._scores import Scores

_KIND = "a Parquet file"
_OF_SCORES = tuple(PREFIX[kind] for kind in KINDS)
_pyarrow = partial(require, extra="parquet", needed_by="a .parquet file")


def read(path: Path) -> Scores:
    """Scores from the columns a ``.csv`` has, or from list columns ``logits`` and so on."""
    parquet = _pyarrow("pyarrow.parquet")
    with parsing(path, _KIND):
        file = parquet.ParquetFile(path, page_checksum_verification=True)
    with file:
        layout = _layout(path, file.schema_arrow)
        with parsing(path, _KIND):
            # Asking for the size of a column ends the process if the footer is damaged.
            size = 8 * file.metadata.num_rows * file.metadata.num_columns
            refuse_bomb(path, unpacked=size, stored=path.stat().st_size)
            texts = [name for name in (LABEL, ID) if name in file.schema_arrow.names]
            table = file.read(columns=[*layout.scores, *layout.features, *texts])
    return scores_of(path, table, kind=_KIND)


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
        texts = [name for name in (LABEL, ID) if name in table.column_names]
        cells = {name: table.column(name).to_pylist() for name in texts}
    return assemble(
        path,
        layout.kind,
        parts[layout.kind],
        labels=cells.get(LABEL),
        features=parts.get("features"),
        ids=text_of(cells[ID]) if layout.id else None,
        classes=layout.classes,
    )


def _layout(path: Path, schema: Any) -> Layout:
    return layout_of(path, schema.names, lists=_lists(schema))


def _lists(schema: Any) -> set[str]:
    return {name for name in PREFIX if name in schema.names and _is_list(schema, name)}


def read_cells(path: Path) -> dict[str, list[Any]] | None:
    """The cells of the columns ``label`` and ``id``; ``None`` if the table holds scores too."""
    parquet = _pyarrow("pyarrow.parquet")
    with parsing(path, _KIND), parquet.ParquetFile(path, page_checksum_verification=True) as file:
        names = file.schema_arrow.names
        if any(name in KINDS or name.startswith(_OF_SCORES) for name in names):
            return None
        refuse_repeated(path, names, (LABEL, ID))
        refuse_bomb(path, unpacked=8 * file.metadata.num_rows, stored=path.stat().st_size)
        table = file.read(columns=[name for name in (LABEL, ID) if name in names])
        return {name: table.column(name).to_pylist() for name in table.column_names}


def _is_list(schema: Any, name: str) -> bool:
    types, kind = _pyarrow("pyarrow").types, schema.field(name).type
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _matrix(path: Path, table: Any, names: Sequence[str], is_list: bool) -> NDArray[Any]:
    if is_list:
        return _from_lists(path, table.column(names[0]), names[0])
    columns = [_numbers(path, table.column(name), name) for name in names]
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
    flat = [_numbers(path, chunk.flatten(), name) for chunk in column.chunks]
    return np.concatenate([*flat, np.empty(0, np.float16)]).reshape(len(column), *lengths)


def _numbers(path: Path, column: Any, name: str) -> NDArray[Any]:
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


def write(path: Path, scores: Scores, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write the columns a ``.csv`` has, in the types of the arrays."""
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    columns = {name: arrow.array(_plain(x)) for name, x in columns_of(scores, extra).items()}
    with path.open("wb") as file:
        parquet.write_table(arrow.table(columns), file, write_page_checksum=True)


def _plain(column: NDArray[Any]) -> Any:
    if column.dtype.kind == "U":
        return column.tolist()
    # pyarrow reads the machine's byte order only.
    return column.astype(column.dtype.newbyteorder("="), copy=False)
