"""Batches of rows from standard input (``.npy``, Arrow, JSON lines) or a folder of scores files."""

from __future__ import annotations

import io
import json
import math
import os
import select
import signal
import stat
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from shiftcal.errors import FileError, InputError, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shiftcal.types import InputKind

_LOOK_SECONDS = 0.2  # how often signals and the folder are looked at
_SEND = (
    "Send batches of logits, as in `shiftcal monitor SPEC < stream.npy`, or follow a folder of "
    "scores files with --follow."
)
_LOST = "Nothing after it can be read. Restart the sender."


@dataclass(frozen=True)
class Batch:
    """Rows that arrive together; their values are not checked yet.

    Attributes:
        values: ``(n, k)`` numbers.
        where: Their position, for messages: ``"batch 3"``.
        kind: What the numbers are; ``None`` for what the monitor expects.
        at: Seconds on the sender's clock.
        ids: One id per row.
        classes: Names of the columns.
        file: Name of their file in a followed folder.
    """

    values: NDArray[np.generic]
    where: str
    kind: InputKind | None = None
    at: float | None = None
    ids: tuple[str | int, ...] | None = None
    classes: tuple[str, ...] | None = None
    file: str | None = None


class BadBatch(InputError):
    """A piece of the input that is not a batch.

    Attributes:
        where: Its position; empty if the reason contains it.
        final: Whether nothing after it can be read.
        file: Name of the file in a followed folder.
    """

    def __init__(
        self, where: str, reason: object, *, final: bool = False, file: str | None = None
    ) -> None:
        text = f"{where}: {reason}" if where else str(reason)
        super().__init__(f"{text} {_LOST}" if final else text)
        self.where, self.final, self.file = where or f"file {file}", final, file


class NothingCame(InputError):
    """Standard input was empty."""


Item: TypeAlias = Batch | BadBatch


class _NoBatch(ValueError):
    """Rows that are not a batch, in a stream that is otherwise sound."""


@dataclass(frozen=True)
class Limits:
    """The largest batch: ``rows`` rows of exactly ``classes`` columns."""

    rows: int
    classes: int

    @property
    def bytes(self) -> int:
        """Most bytes of a batch, as text or binary, with the ids of its rows."""
        return max(1 << 20, self.rows * (self.classes * 32 + 256))

    def check(self, shape: tuple[Any, ...]) -> None:
        """Raise an error for a shape that no batch has."""
        k = self.classes
        if len(shape) != 2 or shape[1] != k:
            raise _NoBatch(
                f"a batch must have shape (rows, {k}), one column per class of the bank; got shape "
                f"{shape}."
            )
        if not 1 <= shape[0] <= self.rows:
            raise _NoBatch(
                f"a batch must have 1 to {self.rows:,} rows; got {shape[0]:,}. Send smaller "
                "batches, or raise --max-batch-rows."
            )


# --- signals and standard input ---------------------------------------------------------------


class Stopped(Exception):
    """A signal asks to stop. Raised only between batches and while waiting for input."""


class Stop:
    """The signal that asked to stop; 0 before one."""

    signal = 0

    def check(self) -> None:
        """Raise :class:`Stopped` if a signal has arrived."""
        if self.signal:
            raise Stopped


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Note the first SIGINT or SIGTERM; the second one acts at once, as without this."""
    stop = Stop()
    before: dict[int, Any] = {}

    def note(number: int, _: object) -> None:
        stop.signal = number
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            # Ignored under nohup and in background shells; None if set outside Python.
            if (handler := signal.getsignal(number)) not in (None, signal.SIG_IGN):
                before[number] = handler
                signal.signal(number, note)
    try:
        yield stop
    finally:
        restore()


class _Interruptible(io.RawIOBase):
    """A descriptor that is read with an eye on signals."""

    def __init__(self, descriptor: int, stop: Stop) -> None:
        self._descriptor, self._stop = descriptor, stop

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._stop.check()
        # Windows can wait for sockets only.
        while os.name != "nt" and not select.select([self._descriptor], [], [], _LOOK_SECONDS)[0]:
            self._stop.check()
        try:
            content = os.read(self._descriptor, len(buffer))
        except OSError as error:
            raise FileError(f"standard input could not be read: {error.strerror}.") from error
        buffer[: len(content)] = content
        return len(content)


def stdin_problem() -> str:
    """Why standard input cannot be read; empty if it can."""
    if sys.stdin is None or sys.stdin.closed:  # <&-
        return f"standard input is closed. {_SEND}"
    return f"standard input is a terminal. {_SEND}" if sys.stdin.isatty() else ""


def open_stdin(stop: Stop) -> io.BufferedIOBase:
    """Standard input as a buffered binary stream that a signal interrupts."""
    try:
        return io.BufferedReader(_Interruptible(sys.stdin.fileno(), stop), 1 << 18)
    except OSError:  # in memory
        return io.BufferedReader(sys.stdin.buffer)  # type: ignore[type-var]


def stream_batches(stream: Any, limits: Limits, named: str | None = None) -> Iterator[Item]:
    """The batches of a buffered binary stream.

    Args:
        stream: With ``peek``.
        limits: The largest batch.
        named: The format; by default the first byte decides.

    Raises:
        InputError: If nothing arrives, or the format is unknown.
    """
    head = stream.peek(1)[:16]
    if not head:
        raise NothingCame(f"standard input is empty. {_SEND}")
    formats = {0x93: "npy", 0xFF: "arrow"} | dict.fromkeys(b"[{ \t\r\n\xef", "jsonl")
    if (name := named or formats.get(head[0])) is None:
        raise InputError(
            "standard input must be .npy arrays, an Arrow stream or JSON lines, uncompressed; it "
            f"begins with the bytes {head!r}. Other files can be read from a folder with --follow."
        )
    yield from READERS[name](stream, limits)


# --- formats ----------------------------------------------------------------------------------


def npy_batches(stream: Any, limits: Limits) -> Iterator[Item]:
    """Every ``.npy`` array of a stream; type and shape are checked before the numbers are read."""
    import numpy as np
    from numpy.lib import format as npy

    number = 0
    while stream.peek(1):
        number += 1
        where, size, reason = f"batch {number}", -1, ""
        try:
            if (version := npy.read_magic(stream)) != (1, 0):
                raise ValueError(f"format version {version} is not supported")
            shape, fortran, dtype = npy.read_array_header_1_0(stream)
        except Stopped:
            raise
        except Exception as error:  # a hostile header raises anything
            text = " ".join(str(error).split())[:200]
            yield BadBatch(where, f"it must be an .npy array; {text}.", final=True)
            return
        try:
            if not dtype.hasobject:
                size = math.prod(shape) * dtype.itemsize
            if dtype.kind not in "iuf":
                raise ValueError(
                    f"a batch must be real numbers; got dtype {dtype}. Pickled objects are never "
                    "loaded. Send float32 or float64."
                )
            limits.check(shape)
        except ValueError as error:
            reason = str(error)
        if reason and not 0 <= size <= limits.bytes:
            yield BadBatch(where, reason, final=True)
            return
        content = stream.read(size)
        if len(content) < size:
            reason = f"its header promises {size} bytes; the input ended after {len(content)}."
            yield BadBatch(where, reason, final=True)
            return
        if reason:
            yield BadBatch(where, reason)
        else:
            flat = np.frombuffer(content, dtype=dtype)
            yield Batch(flat.reshape(shape, order="F" if fortran else "C"), where)


def jsonl_batches(stream: Any, limits: Limits) -> Iterator[Item]:
    """Every line that is not blank; the line after a bad one can always be read."""
    number = 0
    while line := stream.readline(limits.bytes + 1):
        number += 1
        where = f"line {number}"
        if len(line) > limits.bytes:
            while line and not line.endswith(b"\n"):
                line = stream.readline(1 << 16)
            yield BadBatch(
                where,
                f"a line must have at most {limits.bytes:,} bytes. Send smaller batches, or raise "
                "--max-batch-rows.",
            )
        elif text := line.removeprefix(b"\xef\xbb\xbf").strip():
            try:
                yield _json_batch(json.loads(text.decode()), limits, where)
            except (ValueError, RecursionError) as error:  # JSON and UTF-8 errors are ValueErrors
                yield BadBatch(where, f"{str(error)[:300].rstrip('.')}.")


def _json_batch(value: Any, limits: Limits, where: str) -> Batch:
    """A row ``[...]``, a batch ``[[...], ...]``, or an object with one and ``at`` and ``id``."""
    import numpy as np

    fields = value if isinstance(value, dict) else {"": value}
    kinds = [kind for kind in ("", "logits", "probabilities") if kind in fields]
    rows = fields[kinds[0]] if len(kinds) == 1 else None
    if not isinstance(rows, list):
        raise ValueError(
            "a line must be a row [1.5, -0.3, ...], a batch [[...], [...]], or an object with "
            f"either 'logits' or 'probabilities'; got {json.dumps(value)[:60]}"
        )
    try:
        values = np.array(rows)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"rows must have {limits.classes} numbers each; {error}") from error
    if values.dtype.kind not in "iuf":
        raise ValueError(f"rows must be numbers; got {json.dumps(rows)[:60]}")
    is_row = values.ndim == 1
    values = values.reshape(1, -1) if is_row else values
    limits.check(values.shape)
    at, ids = fields.get("at"), fields.get("id")
    # A whole number in JSON may be larger than any float.
    if at is not None and not (type(at) in (int, float) and abs(at) <= sys.float_info.max):
        raise ValueError(f"'at' must be a number of seconds; got {json.dumps(at)[:60]}")
    names = [ids] if is_row and ids is not None else ids
    if names is not None and not (
        isinstance(names, list)
        and len(names) == len(values)
        and all(type(name) in (str, int) for name in names)
    ):
        raise ValueError(
            f"'id' must be text or a whole number for each of {len(values)} rows; got "
            f"{json.dumps(ids)[:60]}"
        )
    return Batch(
        values,
        where,
        kind=kinds[0] or None,  # type: ignore[arg-type]
        at=None if at is None else float(at),
        ids=None if names is None else tuple(names),
    )


class _ArrowSource:
    """What pyarrow reads from; it never asks for more than a batch may have."""

    closed = False

    def __init__(self, stream: Any, limits: Limits) -> None:
        self._stream, self._most = stream, max(limits.bytes, 16 << 20)

    def read(self, n: int) -> bytes:
        if not 0 <= n <= self._most:
            raise ValueError(f"a message has {n:,} bytes, and at most {self._most:,} are read")
        content: bytes = self._stream.read(n)
        return content

    def close(self) -> None:
        """Do nothing: the stream belongs to the caller."""


def arrow_batches(stream: Any, limits: Limits) -> Iterator[Item]:
    """Every record batch of one Arrow stream after another (a restarted sender sends a new one)."""
    from shiftcal.scores import scores_of_table

    arrow = require("pyarrow", extra="parquet", needed_by="an Arrow stream")
    require("pyarrow.ipc", extra="parquet", needed_by="an Arrow stream")
    number, schema, messages = 1, None, None
    while stream.peek(1):
        where = f"batch {number}"
        try:
            if messages is None:
                source = arrow.PythonFile(_ArrowSource(stream, limits), mode="r")
                messages, schema = arrow.ipc.MessageReader.open_stream(source), None
            message = messages.read_next_message()
            if schema is None:
                schema = arrow.ipc.read_schema(message)
                continue
            if message.type != "record batch":
                raise ValueError(f"it contains a message of type {message.type!r}")
            number += 1
            try:
                _check_arrow_message(message.metadata.to_pybytes(), limits)
                record = arrow.ipc.read_record_batch(message, schema)
                record.validate(full=True)
                table = arrow.Table.from_batches([record])
                scores = scores_of_table(Path("the batch"), table, kind="a record batch")
                limits.check(scores.values.shape)
            except (_NoBatch, FileError) as error:
                yield BadBatch(where, error)
                continue
            ids = None if scores.ids is None else tuple(scores.ids.tolist())
            yield Batch(scores.values, where, kind=scores.input, ids=ids, classes=scores.classes)
        except StopIteration:
            messages = None
        except (arrow.ArrowException, ValueError, OSError, struct.error, MemoryError) as error:
            text = " ".join(str(error).split())[:200].rstrip(".")
            reason = f"it must be record batches without dictionaries; {text}."
            yield BadBatch(where, reason, final=True)
            return


def _check_arrow_message(metadata: bytes, limits: Limits) -> None:
    """Reject compression and too many rows by the description alone, before memory is taken.

    The description is a flatbuffer that pyarrow has verified. The third field of its table Message
    is the table RecordBatch, whose first field is the number of rows and fourth the compression.
    """

    def field(table: int, index: int) -> int:
        """Where a field begins; 0 if it is absent."""
        vtable = table - struct.unpack_from("<i", metadata, table)[0]
        place = 4 + 2 * index
        if place >= struct.unpack_from("<H", metadata, vtable)[0]:
            return 0
        offset = struct.unpack_from("<H", metadata, vtable + place)[0]
        return table + offset if offset else 0

    header = field(struct.unpack_from("<I", metadata, 0)[0], 2)
    table = header + struct.unpack_from("<I", metadata, header)[0]
    if field(table, 3):
        raise _NoBatch("record batches must not be compressed. Write the stream uncompressed.")
    length = field(table, 0)
    rows = struct.unpack_from("<q", metadata, length)[0] if length else 0
    limits.check((rows, limits.classes))


READERS = {"npy": npy_batches, "arrow": arrow_batches, "jsonl": jsonl_batches}


# --- a followed folder ------------------------------------------------------------------------


def is_scores_name(name: str) -> bool:
    """Whether a file is read; ``x_labels.npy`` belongs to ``x_logits.npy`` and is not."""
    from shiftcal.scores_io import READABLE, is_part

    path = Path(name)
    return not name.startswith((".", "~")) and path.suffix.lower() in READABLE and not is_part(path)


def new_files(
    folder: Path, done: set[str], stop: Stop, *, once: bool, settle: float
) -> Iterator[Path]:
    """The scores files of a folder as they appear, in the order of their names, each once.

    A file is complete when its size, time and identity have not changed for ``settle`` seconds; it
    waits for the files before it.

    Args:
        folder: The folder.
        done: Names to skip; the names of yielded files are added.
        stop: Checked while waiting.
        once: Whether to end when all files present are read.
        settle: Seconds.
    """
    seen: dict[str, tuple[tuple[int, int, int], float]] = {}
    while True:
        stop.check()
        now, current = time.monotonic(), {}
        try:
            names = sorted(set(os.listdir(folder)) - done)  # noqa: PTH208
        except OSError as error:
            raise FileError(f"{folder} cannot be followed: {error.strerror}.") from error
        for path in (folder / name for name in names if is_scores_name(name)):
            with suppress(OSError):  # it may be gone again
                status = path.stat()
                if not stat.S_ISREG(status.st_mode):
                    continue
                signature = (status.st_size, status.st_mtime_ns, status.st_ino)
                before, since = seen.get(path.name, (None, now))
                current[path.name] = (signature, since if before == signature else now)
        if once and not current:
            return
        seen = current
        waiting = [name for name, (_, since) in seen.items() if now - since < settle]
        ready = [name for name in seen if not waiting or name < waiting[0]]
        for name in ready:
            done.add(name)
            yield folder / name
            stop.check()
        if not ready:
            time.sleep(min(_LOOK_SECONDS, settle) if current else _LOOK_SECONDS)


def file_batch(
    path: Path, *, n_classes: int, classes: tuple[str, ...] | None, normalize: bool = False
) -> Item:
    """All rows of a scores file as one batch."""
    from shiftcal.cli.inputs import read_target

    try:
        scores = read_target(path, n_classes=n_classes, classes=classes, normalize=normalize)
        logits = scores.logits()  # its errors name the file
    except InputError as error:
        return BadBatch("" if str(path) in str(error) else f"file {path}", error, file=path.name)
    return Batch(
        logits if scores.input == "logits" else scores.values,
        f"file {path}",
        kind=scores.input,
        ids=None if scores.ids is None else tuple(scores.ids.tolist()),
        file=path.name,
    )
