"""``shiftcal monitor``: a stream of logits in, lines, events and calibrated confidences out.

Every batch is calibrated, appended to the file of confidences, printed, and then recorded in the
state file, which is replaced atomically. A run that is killed at any moment repeats at most the
batch it was working on: the file of confidences is cut back to what the state knows, and lines may
be printed twice, never lost.
"""

from __future__ import annotations

import io
import json
import math
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from socketserver import ThreadingMixIn
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from typer import Argument, Option

from shiftcal.cli import options
from shiftcal.cli.inputs import check_order, warn_of_another_model
from shiftcal.cli.output import (
    DONE,
    GATE_FAILED,
    Ended,
    complain,
    count_of,
    interrupted,
    one_line,
    progress,
    say,
    terminated,
)
from shiftcal.errors import FileError, InputError, InputWarning, require
from shiftcal.files import file_to_write, flush_folder, lock, read_document, write_document

if TYPE_CHECKING:
    from shiftcal.monitoring import Monitor, Update

# Values of --fail-on, and the events that they name.
GATES = {"outside-bank": "outside-bank", "shift": "shift-began"}
FORMAT, VERSION = "shiftcal-monitor-run", 3
# Confidences are summed as whole numbers of 2**-32, so the sum does not depend on the batches.
_UNIT = 1 << 32
_LOOK_SECONDS = 0.2  # how often a folder is looked at
_SEND = (
    "Send batches of logits, as in `shiftcal monitor SPEC < stream.npy`, or follow a folder of "
    "scores files with --follow."
)


class ReaderGone(Exception):
    """Nobody reads stdout any more."""


class Terminated(KeyboardInterrupt):
    """SIGTERM asks to stop."""


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

    values: Any
    where: str
    kind: str | None = None
    at: float | None = None
    ids: list[Any] | None = None
    classes: tuple[str, ...] | None = None
    file: str | None = None


class BadBatch(InputError):
    """A piece of the input that is not a batch; ``final`` if nothing after it can be read."""

    def __init__(
        self, where: str, reason: object, *, final: bool = False, file: str | None = None
    ) -> None:
        text = " ".join(str(reason)[:1000].split())
        text = text if file and where in text else f"{where}: {text}"
        super().__init__(f"{text} Nothing after it can be read." if final else text)
        self.where, self.final, self.file = where, final, file


# --- input --------------------------------------------------------------------------------------


def stdin_batches(stream: Any) -> Iterator[Batch | BadBatch]:
    """The batches of a buffered binary stream, whose first byte shows the format."""
    head = stream.peek(1)[:1]
    readers = {b"\x93": _npy_batches, b"\xff": _arrow_batches}
    if head not in readers and head not in b"[{ \t\r\n\xef":
        raise InputError(
            "standard input must be .npy arrays, an Arrow stream or JSON lines, uncompressed; it "
            f"begins with the byte {head!r}. Other files can be read from a folder with --follow."
        )
    yield from readers.get(head, _jsonl_batches)(stream)


def _npy_batches(stream: Any) -> Iterator[Batch | BadBatch]:
    """Every ``.npy`` array of a stream."""
    from numpy.lib.format import read_array

    number = 0
    while stream.peek(1):
        number += 1
        try:
            # Only read() is passed on, since numpy would seek in a file.
            values = read_array(SimpleNamespace(read=stream.read), allow_pickle=False)
        except Exception as error:  # a damaged header raises anything
            reason = f"it must be an .npy array of numbers; {error}."
            yield BadBatch(f"batch {number}", reason, final=True)
            return
        yield Batch(values, f"batch {number}")


def _jsonl_batches(stream: Any) -> Iterator[Batch | BadBatch]:
    """Every line that is not blank; the line after a bad one can always be read."""
    for number, line in enumerate(stream, start=1):
        if text := line.removeprefix(b"\xef\xbb\xbf").strip():
            where = f"line {number}"
            try:
                yield _json_batch(json.loads(text.decode()), where)
            except (ValueError, OverflowError, RecursionError) as error:
                yield BadBatch(where, f"{str(error).rstrip('.')}.")


def _json_batch(value: Any, where: str) -> Batch:
    """A row ``[...]``, a batch ``[[...], ...]``, or an object with one and ``at`` and ``id``."""
    import numpy as np

    fields = value if isinstance(value, dict) else {"": value}
    kinds = [kind for kind in ("", "logits", "probabilities") if kind in fields]
    rows = fields[kinds[0]] if len(kinds) == 1 else None
    values = np.array(rows)
    if not isinstance(rows, list) or values.dtype.kind not in "iuf":
        raise ValueError(
            "a line must be a row of numbers [1.5, -0.3, ...], a batch [[...], [...]], or an "
            f"object with either 'logits' or 'probabilities'; got {json.dumps(value)[:60]}"
        )
    if values.ndim == 1:
        values = values[None]
        fields = {**fields, "id": [fields["id"]]} if "id" in fields else fields
    at, ids = fields.get("at"), fields.get("id")
    if at is not None and not (type(at) in (int, float) and math.isfinite(at)):
        raise ValueError(f"'at' must be a number of seconds; got {json.dumps(at)[:60]}")
    if ids is not None and not (isinstance(ids, list) and len(ids) == len(values)):
        raise ValueError(f"'id' must have an id for each row; got {json.dumps(ids)[:60]}")
    return Batch(values, where, kinds[0] or None, None if at is None else float(at), ids)


def _arrow_batches(stream: Any) -> Iterator[Batch | BadBatch]:
    """Every record batch of one Arrow stream after another (a restarted sender sends a new one)."""
    from shiftcal.scores import scores_of_table

    arrow = require("pyarrow", extra="parquet", needed_by="an Arrow stream")
    ipc = require("pyarrow.ipc", extra="parquet", needed_by="an Arrow stream")
    # One stream for one reader after another, never closed.
    source = SimpleNamespace(read=stream.read, closed=False, close=lambda: None)
    number, reader = 0, None
    while reader is not None or stream.peek(1):
        where = f"batch {number + 1}"
        try:
            if reader is None:
                reader = ipc.open_stream(arrow.PythonFile(source, mode="r"))
            record = reader.read_next_batch()
            record.validate(full=True)
        except StopIteration:
            reader = None
            continue
        except (arrow.ArrowException, ValueError, OSError, MemoryError) as error:
            yield BadBatch(where, f"it must be an Arrow record batch; {error}.", final=True)
            return
        number += 1
        try:
            table = arrow.Table.from_batches([record])
            scores = scores_of_table(Path("the batch"), table, kind="a record batch")
        except (InputError, ValueError) as error:  # such as names that are not UTF-8
            yield BadBatch(where, error)
        else:
            yield _batch_of(scores, where)


def _batch_of(scores: Any, where: str, file: str | None = None) -> Batch:
    ids = None if scores.ids is None else scores.ids.tolist()
    return Batch(scores.values, where, scores.input, None, ids, scores.classes, file)


def new_files(folder: Path, done: set[str], *, once: bool, settle: float) -> Iterator[Path]:
    """The scores files of a folder as they appear, in the order of their names, each once.

    A file is complete ``settle`` seconds after its last change; it waits for the files before it.

    Args:
        folder: The folder.
        done: Names to skip; the names of yielded files are added.
        once: Whether to end when all files present are read.
        settle: Seconds.
    """
    from shiftcal.scores_io import READABLE, is_part

    while True:
        waiting = False
        try:
            paths = sorted(path for path in folder.iterdir() if path.name not in done)
        except OSError as error:
            raise FileError(f"{folder} cannot be followed: {error.strerror}.") from error
        for path in paths:
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
        time.sleep(_LOOK_SECONDS)


def file_batches(
    options: SimpleNamespace, done: set[str], monitor: Monitor
) -> Iterator[Batch | BadBatch]:
    """All rows of each scores file of the followed folder as one batch."""
    from shiftcal.scores import read_scores

    warned, settle = False, 1.0 if options.settle is None else options.settle
    for path in new_files(options.follow, done, once=options.once, settle=settle):
        try:
            yield _batch_of(read_scores(path), str(path), path.name)
        except InputError as error:
            yield BadBatch(str(path), error, file=path.name)
        else:
            warned = warned or warn_of_another_model(monitor.method_, Path("the monitor"), path)


# --- Prometheus ---------------------------------------------------------------------------------


class _Handler(WSGIRequestHandler):
    timeout = 2.0  # seconds without a byte after which a connection is closed

    def log_message(self, *_: object) -> None: ...


class _Server(ThreadingMixIn, WSGIServer):
    """A thread per connection, at most 32; more wait to be accepted."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._room = threading.Semaphore(32)
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._room.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, *_: object) -> None:
        """Ignore connections that end early."""


class Metrics:
    """The state of a run for Prometheus, served over HTTP.

    Args:
        run: The run.
        port: Port; 0 for any free one.
        host: Address to listen at.
    """

    def __init__(self, run: Run, port: int, host: str) -> None:
        client = require("prometheus_client", extra="monitor", needed_by="--metrics-port")
        self._core = require("prometheus_client.core", extra="monitor", needed_by="--metrics-port")
        self._run = run
        registry = client.CollectorRegistry()
        registry.register(self)
        try:
            self._server = _Server(host, port)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"metrics cannot be served at {host}, port {port}: {error}. Choose another "
                "--metrics-port (0 for any free one) or --metrics-host."
            ) from error
        self._server.set_app(client.make_wsgi_app(registry))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        shown = f"[{host}]" if ":" in host else host
        complain("note", f"metrics are at http://{shown}:{self._server.server_port}/metrics")

    def collect(self) -> Iterator[Any]:
        """Every series, when Prometheus asks."""
        from shiftcal.monitoring import KINDS, STATES

        core, run, monitor = self._core, self._run, self._run.monitor
        counter, gauge = core.CounterMetricFamily, core.GaugeMetricFamily
        yield counter("shiftcal_rows", "Rows calibrated by this process.", run.rows)
        yield counter("shiftcal_batches", "Batches or files read by this process.", run.batches)
        yield counter("shiftcal_malformed_batches", "Batches or files left out.", run.malformed)
        states = {state: state == monitor.state for state in STATES}
        yield core.StateSetMetricFamily("shiftcal_state", "State of the stream.", states)
        temperature = monitor.running_.temperature
        yield gauge("shiftcal_temperature", "Of the next row.", temperature or math.nan)
        events = counter("shiftcal_events", "Changes of state, by kind.", labels=["kind"])
        for kind in KINDS:
            events.add_metric([kind], run.events[kind])
        yield events
        window = run.window or {}
        about = "Mean confidence: raw in the window, calibrated since the line before."
        confidence = gauge("shiftcal_mean_confidence", about, labels=["kind"])
        confidence.add_metric(["raw"], window.get("raw_mean_confidence") or math.nan)
        confidence.add_metric(["calibrated"], window.get("mean_confidence") or math.nan)
        yield confidence
        about = "Estimated accuracy in the window."
        accuracy = gauge("shiftcal_estimated_accuracy", about, labels=["bound"])
        for bound in ("value", "low", "high"):
            accuracy.add_metric([bound], (window.get("accuracy") or {}).get(bound, math.nan))
        yield accuracy

    def close(self) -> None:
        """Free the port."""
        self._server.shutdown()
        self._server.server_close()


# --- a run --------------------------------------------------------------------------------------


@dataclass
class Progress:
    """How far the input has been read, by all runs together.

    Attributes:
        items: Batches of standard input, malformed ones included.
        folder: The followed folder.
        files: Names of its files that are done.
        confidences: The file of confidences.
        acknowledged: Bytes of it that belong to this state.
        sums: ``[rows, confidence]`` since the last window line, the latter in units of 2**-32.
    """

    items: int = 0
    folder: str = ""
    files: list[str] = field(default_factory=list)
    confidences: str = ""
    acknowledged: int = 0
    sums: list[int] = field(default_factory=lambda: [0, 0])


class Run:
    """A monitor at work, with its outputs.

    Args:
        monitor: Fitted, with its running state.
        options: Of the command.
        stack: Closes what is opened.
    """

    def __init__(self, monitor: Monitor, options: SimpleNamespace, stack: ExitStack) -> None:
        self.monitor, self.options = monitor, options
        self.every = options.every or monitor.window_.plan().rows
        self.progress = self._read_state()
        folder = "" if options.follow is None else str(options.follow.resolve())
        if folder and self.progress.folder not in ("", folder):
            raise InputError(f"{options.state} belongs to a monitor of {self.progress.folder}.")
        self.progress.folder = folder or self.progress.folder
        self._file: Any = None
        if options.confidences not in (None, "-"):
            self._file = stack.enter_context(self._open_confidences(Path(options.confidences)))
        self._gates = {GATES[name] for name in options.fail_on or ()}
        self.rows = self.batches = self.malformed = 0
        self.events: Counter[str] = Counter()
        self.window: dict[str, Any] | None = None  # the last line about a window
        if options.metrics_port is not None:
            metrics = Metrics(self, options.metrics_port, options.metrics_host or "127.0.0.1")
            stack.callback(metrics.close)

    def _read_state(self) -> Progress:
        """Load the state file into the monitor, if there is one."""
        path = self.options.state
        if path is None or not path.exists():
            return Progress()
        document = read_document(path, "the state of a monitor", format=FORMAT, version=VERSION)
        try:
            self.monitor.load_state_dict(document.get("monitor"))
            done = Progress(**document["progress"])
        except (InputError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} cannot be resumed: {error} Keep the monitor with --save and name that "
                "file each time, since one fitted again on a bank may differ in its last bits; or "
                "start over with another --state."
            ) from error
        complain("note", f"resuming after row {self.monitor.rows:,}, from {path}")
        return done

    def _open_confidences(self, path: Path) -> Any:
        """The file of confidences, cut back to the bytes that the state knows."""
        done, size = self.progress, path.stat().st_size if path.is_file() else 0
        if done.confidences != str(path.resolve()):
            done.confidences, done.acknowledged = str(path.resolve()), 0
            if size:
                raise FileError(
                    f"{path} already exists, and would mix the confidences of two runs. Name "
                    "another file, delete this one, or resume with the --state it belongs to."
                )
        if size < done.acknowledged:
            raise FileError(
                f"{path} must have the {done.acknowledged} bytes that the state knows of; it has "
                f"{size}. Restore it, or start over with another --state."
            )
        file = path.open("ab")
        file.truncate(done.acknowledged)
        flush_folder(path.parent)
        return file

    def take(self, item: Batch | BadBatch) -> str:
        """Calibrate a batch and write the results, all or none; returns why a gate failed."""
        lines: list[dict[str, Any]] = []
        confidences: list[str] = []
        try:
            if isinstance(item, BadBatch):
                raise item
            self._feed(item, self._checked(item), lines, confidences)
        except BadBatch as bad:
            self.malformed += 1
            if self.options.on_error == "stop" or bad.final:
                raise
            complain("warning", f"left out: {bad}")
            lines.append({"type": "malformed", "where": bad.where, "message": str(bad)})
        if item.file is None:
            self.progress.items += 1
        else:
            self.progress.files.append(item.file)
        if self._file is not None:
            self._append(confidences)
            confidences = []
        self.print(lines, confidences)
        self.write_state()
        for line in lines:
            if line["type"] == "event" and line["kind"] in self._gates:
                return f"{line['kind']} at row {line['row']:,}: {line['message']}"
        return ""

    def _checked(self, batch: Batch) -> Any:
        """The logits of a batch."""
        from shiftcal.checks import check_scores, normalize_rows

        monitor, values = self.monitor, batch.values
        kind = batch.kind or monitor.method_.input
        try:
            if batch.classes is not None and monitor.class_names_ is not None:
                check_order(Path(batch.where), batch.classes, monitor.class_names_)
            if self.options.normalize and kind == "probabilities":
                values = normalize_rows(values)
            return check_scores(values, input=kind, k=monitor.n_classes_)
        except InputError as error:
            raise BadBatch(batch.where, error, file=batch.file) from error

    def _feed(
        self, batch: Batch, logits: Any, lines: list[dict[str, Any]], confidences: list[str]
    ) -> None:
        """Feed checked rows in pieces that end where a window line is due."""
        start, n, sums = 0, len(logits), self.progress.sums
        while start < n:
            first = self.monitor.rows
            stop = min(n, start + self.every - first % self.every)
            update = self.monitor._feed_checked(logits[start:stop], batch.at)
            if self.options.confidences is not None:
                ids = None if batch.ids is None else batch.ids[start:stop]
                confidences += confidence_lines(update, first, ids)
            for event in update.events:
                self.events[event.kind] += 1
                lines.append({"type": "event", **event.to_dict()})
            sums[0] += stop - start
            sums[1] += int((update.confidence * _UNIT).round().astype("int64").sum())
            if update.rows % self.every == 0:
                mean = sums[1] / (_UNIT * sums[0])
                self.window = window_line(update, at=batch.at, mean=mean)
                lines.append(self.window)
                sums[:] = [0, 0]
            start = stop
        self.rows += n
        self.batches += 1

    def _append(self, confidences: list[str]) -> None:
        """Have lines on the disk, before the state knows of them."""
        try:
            self._file.write("".join(f"{line}\n" for line in confidences).encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            raise FileError(
                f"{self.options.confidences} could not be written: {error.strerror}. Make room, "
                "and start again."
            ) from error
        self.progress.acknowledged = self._file.tell()

    def print(self, lines: list[dict[str, Any]], confidences: list[str]) -> None:
        """Write lines to stdout, flushed."""
        show: Any = json.dumps if self.options.as_json else text_of
        texts = [*confidences, *filter(None, map(show, lines))]
        if texts and not say("\n".join(texts)):
            raise ReaderGone

    def print_about(self, kind: str, **facts: Any) -> None:
        """Print the first or the last line."""
        where = {"row": self.monitor.rows, "state": self.monitor.state}
        self.print([{"type": kind, **facts, **where}], [])

    def print_end(self, by: str) -> None:
        """Print the last line."""
        names = ("rows", "batches", "malformed", "events")
        counts = {name: getattr(self, name) for name in names}
        self.print_about("end", by=by, **counts, followed=bool(self.progress.folder))

    def write_state(self) -> None:
        """Replace the state file."""
        if self.options.state is not None:
            content = {"monitor": self.monitor.state_dict(), "progress": asdict(self.progress)}
            write_document(self.options.state, content, format=FORMAT, version=VERSION)

    def items(self) -> Iterator[Batch | BadBatch]:
        """The input, after what earlier runs have handled."""
        if self.options.follow is not None:
            yield from file_batches(self.options, set(self.progress.files), self.monitor)
            return
        raw: Any = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        stream = io.BufferedReader(raw, 1 << 18)
        if not stream.peek(1):
            if self.options.save is None:
                raise InputError(f"standard input is empty. {_SEND}")
            return
        items = stdin_batches(stream)
        known = self.progress.items if self.options.replay else 0
        for seen in range(known):
            if next(items, None) is None:
                raise InputError(
                    f"with --replay, standard input must begin with the {known:,} batches that the "
                    f"state has seen; it ended after {seen:,}."
                )
        yield from items

    def go(self) -> Ended:
        """Take every item until the input, a signal, an error or a gate ends it."""
        try:
            self.write_state()  # from now on it owns the file of confidences
            self.print_about(
                "start",
                shiftcal=version("shiftcal"),
                command="monitor",
                method=self.monitor.method_.name,
                every=self.every,
                state_file=None if self.options.state is None else str(self.options.state),
            )
            for item in self.items():
                if failed := self.take(item):
                    self.print_end("gate")
                    complain("gate failed", failed)
                    return Ended(GATE_FAILED)
            self.print_end("input")
        except ReaderGone:
            pass
        except KeyboardInterrupt as stopped:
            asked = isinstance(stopped, Terminated)
            self.print_end("SIGTERM" if asked else "SIGINT")
            return Ended(terminated() if asked else interrupted())
        except BadBatch:
            self.print_end("error")
            raise
        return Ended(DONE)


def window_line(update: Update, *, at: float | None, mean: float) -> dict[str, Any]:
    """The state of the stream after ``update``, with the mean confidence since the last line."""
    estimate, selection = update.estimate, update.selection
    accuracy = None
    if estimate is not None:
        accuracy = {name: getattr(estimate, name) for name in ("value", "low", "high", "level")}
    return {
        "type": "window",
        "row": update.rows,
        "at": at,
        "state": update.state,
        "statistic": update.statistic,
        "outside": update.outside,
        "temperature": update.temperature,
        "set": None if selection is None else selection.set_name,
        "mean_confidence": mean,
        "raw_mean_confidence": None if selection is None else selection.mean_confidence,
        "accuracy": accuracy,
    }


def confidence_lines(update: Update, first: int, ids: list[Any] | None) -> list[str]:
    """One JSON object per row, with all digits."""
    lines = []
    for i, (confidence, label) in enumerate(zip(update.confidence, update.predicted, strict=True)):
        line = {"type": "confidence", "row": first + i, "confidence": float(confidence)}
        line |= {"predicted": int(label)} | ({} if ids is None else {"id": ids[i]})
        lines.append(json.dumps(line))
    return lines


def text_of(line: dict[str, Any]) -> str:
    """A line for people; empty if it is for programs only."""
    if line["type"] == "event":
        at = "" if line["at"] is None else f" at {line['at']:.15g}"
        return f"event  row {line['row']:,}{at}  {line['kind']}: {line['message']}"
    if line["type"] == "end" and (line["by"] != "error" or line["batches"]):
        malformed = f", {line['malformed']:,} malformed" if line["malformed"] else ""
        events = count_of(sum(line["events"].values()), "event")
        batches = count_of(line["batches"], "file" if line["followed"] else "batch")
        batches = batches.replace("batchs", "batches")
        return (
            f"end  {count_of(line['rows'], 'row')} in {batches}{malformed}, {events}; at row "
            f"{line['row']:,}, {line['state']}"
        )
    if line["type"] != "window":
        return ""
    parts = [f"row {line['row']:,}", line["state"]]
    if line["temperature"] is not None:
        parts.append(f"T {line['temperature']:.3f}")
    if line["set"] is not None:
        parts.append(f"set {one_line(line['set'])}")
    raw = line["raw_mean_confidence"]
    before = "" if raw is None else f" (raw {raw:.4f})"
    parts.append(f"confidence {line['mean_confidence']:.4f}{before}")
    if accuracy := line["accuracy"]:
        parts.append("accuracy {value:.4f} ({low:.4f} to {high:.4f})".format(**accuracy))
    return "  ".join(parts)


# --- the command --------------------------------------------------------------------------------


def monitor(
    spec: Annotated[Path, Argument(metavar="SPEC")],
    follow: options.Folder = None,
    once: bool = False,
    settle: Annotated[float | None, Option(metavar="SECONDS", min=0)] = None,
    on_error: Annotated[str, Option(metavar="stop|skip")] = "stop",
    every: options.MaybeCount = None,
    confidences: Annotated[str | None, Option(metavar="FILE|-")] = None,
    state: options.File = None,
    replay: bool = False,
    fail_on: Annotated[list[str] | None, Option(metavar="outside-bank|shift")] = None,
    metrics_port: Annotated[int | None, Option(metavar="N", min=0, max=65535)] = None,
    metrics_host: Annotated[str | None, Option(metavar="HOST")] = None,
    method: options.Name = None,
    set_: options.Settings = None,
    estimator: Annotated[str | None, Option(metavar="NAME|none")] = None,
    window: options.MaybeCount = None,
    half_life: options.MaybeCount = None,
    false_alarms: Annotated[float | None, Option(metavar="X")] = None,
    save: options.File = None,
    normalize: options.Normalize = False,
    as_json: Annotated[bool, Option("--json")] = False,
) -> Ended:
    """Calibrate a stream of logits, and report when it shifts.

    Example:
        shiftcal monitor bank/ --follow scores/ --state monitor.state.json

    Args:
        spec: A saved monitor (.json), or a bank's folder to fit one on first.
        follow: Read the scores files of this folder as they appear, by name.
        once: With --follow: end when all files are read.
        settle: With --follow: age of a complete file; default: 1.
        on_error: At a batch or file that cannot be used.
        every: Rows per printed line; default: the window's.
        confidences: Append every row's confidence and class here as JSON lines; - for stdout.
        state: Keep the running state here; a restart with it resumes after the last batch.
        replay: With --state: stdin starts from its beginning; skip what was seen.
        fail_on: End with status 1 when that begins. Repeatable.
        metrics_port: Port for Prometheus; 0 for any free.
        metrics_host: Its address; default: 127.0.0.1.
        method: With a bank: method; default: rehearsal.
        set_: A setting of the method. Repeatable.
        estimator: With a bank: estimator of accuracy; default: rehearsed.
        window: With a bank: use the last N rows.
        half_life: With a bank: rows count half after N rows.
        false_alarms: With a bank: false alarms per 100,000 clean rows.
        save: Save the fitted monitor as .json.
        as_json: Print JSON lines, one object each with a 'type'.
    """
    return _monitor(SimpleNamespace(**locals()))


def _terminate(*_: object) -> None:
    raise Terminated


def _monitor(options: SimpleNamespace) -> Ended:
    """The same, with the options by name."""
    _check_options(options)
    nothing = ""
    if options.follow is None:
        if sys.stdin is None or sys.stdin.closed:  # <&-
            nothing = f"standard input is closed. {_SEND}"
        elif sys.stdin.isatty():
            nothing = f"standard input is a terminal. {_SEND}"
    if nothing and options.save is None:
        raise InputError(nothing)
    fitted = _find_monitor(options)
    if options.save is not None:
        complain("note", f"the monitor is saved as {options.save}")
    if nothing:
        return Ended(DONE)
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("once", InputWarning)  # not once per row
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGTERM, _terminate)
            stack.callback(signal.signal, signal.SIGTERM, before)
        if options.state is not None:
            stack.enter_context(lock(file_to_write(options.state), by="`shiftcal monitor`"))
        return Run(fitted, options, stack).go()


def _check_options(options: SimpleNamespace) -> None:
    """Raise for options that contradict each other, before any work is done."""
    from shiftcal.checks import check_choice

    check_choice(options.on_error, ("stop", "skip"), name="--on-error")
    for name in options.fail_on or ():
        check_choice(name, tuple(GATES), name="--fail-on")
    follow, host = options.follow, options.metrics_host
    waits = options.once or options.settle is not None
    for wrong, message in (
        (options.replay and options.state is None, "--replay needs --state FILE."),
        (waits and not follow, "--once and --settle need --follow DIR."),
        (follow and options.replay, "--replay does not go with --follow DIR."),
        (options.confidences == "-" and not options.as_json, "--confidences - needs --json."),
        (host and options.metrics_port is None, "--metrics-host needs --metrics-port N."),
        (options.window and options.half_life, "--window and --half-life exclude one another."),
    ):
        if wrong:
            raise InputError(message)
    if follow is not None and not follow.is_dir():
        raise FileError(f"{follow} is not a folder. Name the folder that scores files come into.")


def _find_monitor(options: SimpleNamespace) -> Monitor:
    """The saved monitor that SPEC names, or one fitted on the bank there."""
    from shiftcal.monitoring import Monitor
    from shiftcal.persistence import load

    spec = options.spec
    if spec.is_dir():
        return _fit_monitor(options)
    what = "Name a monitor saved with Monitor.save or --save, or the folder of a bank."
    names = ("method", "set_", "estimator", "window", "half_life", "false_alarms", "save")
    if given := [name for name in names if getattr(options, name)]:
        shown = ", ".join(f"--{name.strip('_').replace('_', '-')}" for name in given)
        raise InputError(f"{shown}: only for fitting on the folder of a bank; {spec} is none.")
    if not spec.exists():
        raise FileError(f"{spec} does not exist. {what}")
    loaded = load(spec)
    if not isinstance(loaded, Monitor):
        raise FileError(f"{spec} holds the {loaded.kind} {loaded.name!r}, not a monitor. {what}")
    return loaded


def _fit_monitor(options: SimpleNamespace) -> Monitor:
    from shiftcal import methods
    from shiftcal.cli.inputs import choose_settings
    from shiftcal.monitoring import Exponential, Monitor, Sliding, Window
    from shiftcal.registry import ESTIMATORS
    from shiftcal.surrogates import SurrogateBank

    method = methods.get(options.method or "rehearsal")
    settings = choose_settings(method, {}, options.set_ or [])
    estimator = options.estimator or "rehearsed"
    window: Window = Sliding() if options.window is None else Sliding(rows=options.window)
    if options.half_life is not None:
        window = Exponential(half_life=options.half_life)
    if (save := options.save) is not None and save.suffix.lower() != ".json":
        raise FileError(f"{save} must end in .json.")
    with progress(f"fitting a monitor on {options.spec} ..."):
        bank = SurrogateBank.load(options.spec, normalize=options.normalize)
        monitor = Monitor(
            method(input=bank.input, **settings),
            estimator=None if estimator == "none" else ESTIMATORS.canonical(estimator),
            window=window,
            false_alarms=1.0 if options.false_alarms is None else options.false_alarms,
        ).fit(bank)
    if save is not None:
        monitor.save(save)
    return monitor
