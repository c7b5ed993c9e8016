"""Arrow IPC streams: every record batch a batch, by the columns a scores table has."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shiftcal._optional import require
from shiftcal.cli._monitor_batches import Batch, Broken, Item, Limits
from shiftcal.errors import FileError

if TYPE_CHECKING:
    from shiftcal.cli._monitor_intake import Intake

MAGIC = b"\xff\xff\xff\xff"
_LOST = "Nothing after it can be read. Start the sender again."
# Bytes of the description of a message: some fifty a column, and names in the first one.
_LONGEST_HEADER = 16 << 20


def arrow_batches(intake: Intake, limits: Limits) -> Iterator[Item]:
    """Every record batch; a stream that is damaged ends with one that is broken.

    Where a stream has ended another may begin: a sender that was started again sends a new one.

    Raises:
        MissingExtra: If pyarrow is not installed.
    """
    arrow = require("pyarrow", extra="parquet", needed_by="an Arrow stream")
    require("pyarrow.ipc", extra="parquet", needed_by="an Arrow stream")
    number = 0
    while intake.peek(1):
        for item in _of_stream(arrow, intake, limits, number):
            yield item
            if isinstance(item, Broken) and item.final:
                return
            number += 1


def _of_stream(arrow: Any, intake: Intake, limits: Limits, number: int) -> Iterator[Item]:
    """The record batches of one stream, of which ``number`` came before it."""
    source, schema = _Source(intake, limits), None
    messages = arrow.ipc.MessageReader.open_stream(arrow.PythonFile(source, mode="r"))
    while True:
        start = intake.offset
        where = f"batch {number + 1} (from byte {start})"
        try:
            message = messages.read_next_message()
            if schema is None:
                schema = arrow.ipc.read_schema(message)
                continue
            where = f"batch {number + 1} (bytes {start} to {intake.offset})"
            if message.type != "record batch":
                raise ValueError(f"it holds a message of type {message.type!r}")
            if reason := _refused(message.metadata.to_pybytes(), limits):
                yield Broken(where, reason)
            else:
                found = arrow.ipc.read_record_batch(message, schema)
                found.validate(full=True)
                yield _batch(arrow, found, limits, where)
            number += 1
        except StopIteration:
            return
        except (arrow.ArrowException, ValueError, OSError, struct.error, MemoryError) as error:
            text = " ".join(str(error).split())[:200].rstrip(".")
            reason = f"the stream must be record batches without dictionaries; {text}."
            yield Broken(where, reason, _LOST)
            return


def _batch(arrow: Any, found: Any, limits: Limits, where: str) -> Item:
    from pathlib import Path

    from shiftcal.scores.parquet import scores_of

    table = arrow.Table.from_batches([found])
    try:
        scores = scores_of(Path("the batch"), table, kind="a record batch")
    except FileError as error:
        return Broken(where, str(error))
    if reason := limits.refused(scores.values.shape):
        return Broken(where, reason)
    ids = None if scores.ids is None else tuple(scores.ids.tolist())
    return Batch(scores.values, where, kind=scores.input, ids=ids, classes=scores.classes)


class _Source:
    """What pyarrow reads from: it asks for as many bytes as the stream says, up to a limit."""

    closed = False

    def __init__(self, intake: Intake, limits: Limits) -> None:
        self._intake = intake
        self._most = max(limits.body, _LONGEST_HEADER)

    def read(self, n: int) -> bytes:
        if not 0 <= n <= self._most:
            raise ValueError(
                f"it says that {n:,} bytes belong together, and at most {self._most:,} may: send "
                "smaller batches, or raise --max-batch-rows"
            )
        return self._intake.take(n)

    def close(self) -> None:
        """Nothing: whoever opened it closes it."""


def _refused(metadata: bytes, limits: Limits) -> str:
    """Why a record batch is not unpacked, by its description alone, before memory is taken.

    The description is a flatbuffer that pyarrow has verified. Of its table Message the third field
    is the table RecordBatch, whose first field is the number of rows and fourth the compression.
    """
    (root,) = struct.unpack_from("<I", metadata, 0)
    header = _field(metadata, root, 2)
    if not header:
        return "a record batch must say what it holds; this one does not. Write it again."
    table = header + struct.unpack_from("<I", metadata, header)[0]
    if _field(metadata, table, 3):
        return (
            "record batches must not be compressed, since how large they become is not known "
            "before; these are. Write the stream without compression."
        )
    length = _field(metadata, table, 0)
    rows = struct.unpack_from("<q", metadata, length)[0] if length else 0
    return limits.refused((rows, limits.classes))


def _field(data: bytes, table: int, index: int) -> int:
    """Where a field of a flatbuffer's table begins; 0 if the table is without it."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    place = 4 + 2 * index
    offset = struct.unpack_from("<H", data, vtable + place)[0] if place < size else 0
    return table + offset if offset else 0
