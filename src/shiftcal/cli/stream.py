"""Batches of rows that reach ``shiftcal monitor``, from standard input, a folder or a request."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from shiftcal.errors import InputError, require

_LOOK_SECONDS = 0.2  # how often a folder is looked at


@dataclass(frozen=True)
class RowBatch:
    """Rows that arrive together; their values are not checked yet.

    Attributes:
        values: ``(n, k)`` numbers.
        where: Their position, for messages: ``"batch 3"``.
        kind: What the numbers are; ``None`` for what the monitor expects.
        at: Seconds on the sender's clock.
        ids: One id per row.
        classes: Names of the columns.
        file: Name of their file in a followed folder.
        checked: Whether ``values`` are checked logits, as from HTTP.
    """

    values: Any
    where: str
    kind: str | None = None
    at: float | None = None
    ids: list[Any] | None = None
    classes: tuple[str, ...] | None = None
    file: str | None = None
    checked: bool = False


class BadBatch(InputError):
    """A piece of the input that is not a batch; a reader that raises it cannot read on."""

    def __init__(self, where: str, reason: object, file: str | None = None) -> None:
        text = " ".join(str(reason)[:1000].split())
        super().__init__(text if text.startswith(where) else f"{where}: {text}")
        self.where, self.file = where, file


def stdin_batches(stream: Any) -> Iterator[RowBatch | BadBatch]:
    """The batches of a buffered binary stream, whose first byte shows the format."""
    head = stream.peek(1)[:1]
    readers = {b"\x93": _npy_batches, b"\xff": arrow_batches}
    if head not in readers and head not in b"[{ \t\r\n\xef":
        raise InputError(
            "standard input must be .npy arrays, an Arrow stream or JSON lines, uncompressed; it "
            f"begins with the byte {head!r}. Other files can be read from a folder with --follow."
        )
    yield from readers.get(head, _jsonl_batches)(stream)


def _npy_batches(stream: Any) -> Iterator[RowBatch | BadBatch]:
    """Every ``.npy`` array of a stream."""
    from numpy.lib.format import read_array

    # Only read() is passed on, since numpy would seek in a file.
    source: Any = SimpleNamespace(read=stream.read)
    number = 0
    while stream.peek(1):
        number += 1
        try:
            values = read_array(source, allow_pickle=False)
        except Exception as error:  # a damaged header raises anything
            reason = f"it must be an .npy array of numbers; {error}."
            raise BadBatch(f"batch {number}", reason) from error
        yield RowBatch(values, f"batch {number}")


def _jsonl_batches(stream: Any) -> Iterator[RowBatch | BadBatch]:
    """Every line that is not blank; the line after a bad one can always be read."""
    for number, line in enumerate(stream, start=1):
        if text := line.removeprefix(b"\xef\xbb\xbf").strip():
            where = f"line {number}"
            try:
                yield json_batch(json.loads(text.decode()), where)
            except (ValueError, OverflowError, RecursionError) as error:
                yield BadBatch(where, f"{str(error).rstrip('.')}.")


def json_batch(value: Any, where: str) -> RowBatch:
    """A row ``[...]``, a batch ``[[...], ...]``, or an object with one and ``at`` and ``id``."""
    import numpy as np

    fields = value if isinstance(value, dict) else {"": value}
    kinds = [kind for kind in ("", "logits", "probabilities") if kind in fields]
    rows = fields[kinds[0]] if len(kinds) == 1 else None
    values = np.array(rows)
    if not isinstance(rows, list) or values.dtype.kind not in "iuf":
        raise ValueError(
            "it must be a row of numbers [1.5, -0.3, ...], a batch [[...], [...]], or an "
            f"object with either 'logits' or 'probabilities'; got {json.dumps(value)[:60]}"
        )
    at, ids = fields.get("at"), fields.get("id")
    if values.ndim == 1:
        values, ids = values[None], None if ids is None else [ids]
    if at is not None and not (type(at) in (int, float) and math.isfinite(at)):
        raise ValueError(f"'at' must be a number of seconds; got {json.dumps(at)[:60]}")
    named = isinstance(ids, list) and all(isinstance(name, str | int | float) for name in ids)
    if ids is not None and not (named and len(ids) == len(values)):
        raise ValueError(
            f"'id' must have a text or number for each row; got {json.dumps(ids)[:60]}"
        )
    return RowBatch(values, where, kinds[0] or None, None if at is None else float(at), ids)


def arrow_batches(stream: Any) -> Iterator[RowBatch | BadBatch]:
    """Every record batch of one Arrow stream after another (a restarted sender sends a new one)."""
    from shiftcal.scores import scores_of_table

    arrow = require("pyarrow", extra="parquet", needed_by="an Arrow stream")
    ipc = require("pyarrow.ipc", extra="parquet", needed_by="an Arrow stream")
    # One stream for one reader after another, never closed.
    source = SimpleNamespace(read=stream.read, closed=False, close=lambda: None)
    number = 0
    try:
        while stream.peek(1):
            for record in ipc.open_stream(arrow.PythonFile(source, mode="r")):
                record.validate(full=True)
                number += 1
                table = arrow.Table.from_batches([record])
                try:
                    scores = scores_of_table(Path("the batch"), table, kind="a record batch")
                    yield batch_of(scores, f"batch {number}")
                except InputError as error:
                    yield BadBatch(f"batch {number}", error)
    except (arrow.ArrowException, ValueError, OSError, MemoryError) as error:
        reason = f"it must be an Arrow record batch; {error}."
        raise BadBatch(f"batch {number + 1}", reason) from error


def batch_of(scores: Any, where: str, file: str | None = None) -> RowBatch:
    """All rows of scores that were read."""
    ids = None if scores.ids is None else scores.ids.tolist()
    return RowBatch(scores.values, where, scores.input, None, ids, scores.classes, file)


def new_files(folder: Path, done: set[str], *, once: bool, settle: float) -> Iterator[Path | None]:
    """The scores files of a folder as they appear, in the order of their names, each once.

    ``None`` stands for a look that found none. A file is complete ``settle`` seconds after its last
    change; it waits for the files before it.

    Args:
        folder: The folder.
        done: Names to skip; the names of yielded files are added.
        once: Whether to end when all files present are read.
        settle: Seconds.
    """
    from shiftcal.scores_io import READABLE, is_part

    while True:
        waiting = False
        for path in sorted(path for path in folder.iterdir() if path.name not in done):
            hidden = path.name.startswith((".", "~"))
            if hidden or path.suffix.lower() not in READABLE or is_part(path):
                continue
            if path.is_file():
                waiting = settle > 0 and time.time() - path.stat().st_mtime < settle
                if waiting:
                    break
                done.add(path.name)
                yield path
        if once and not waiting:
            return
        yield None
        time.sleep(_LOOK_SECONDS)
