"""``shiftcal monitor``: a stream of logits in, lines, events and calibrated confidences out.

Every batch is calibrated, appended to the file of confidences, printed, and then recorded in the
state file, which is replaced atomically. A run that is killed at any moment repeats at most the
batch it was working on: the file of confidences is cut back to what the state knows, and lines may
be printed twice, never lost.
"""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from socketserver import ThreadingMixIn
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import typer

from shiftcal.cli import output as _tables
from shiftcal.cli.inputs import check_order, check_output, warn_of_another_model, written
from shiftcal.cli.monitor_input import (
    READERS,
    BadBatch,
    Batch,
    Item,
    Limits,
    NothingCame,
    Stop,
    Stopped,
    file_batch,
    new_files,
    open_stdin,
    stdin_problem,
    stop_on_signals,
    stream_batches,
)
from shiftcal.cli.options import Normalize
from shiftcal.cli.output import (
    DONE,
    GATE_FAILED,
    Ended,
    complain,
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
FORMAT, VERSION = "shiftcal-monitor-run", 2
# Confidences are summed as whole numbers of 2**-32, so the sum does not depend on the batches.
_UNIT = 1 << 32
# Most rows fed at once, which bounds the memory for a large file.
_PIECE_ROWS = 1 << 16


class ReaderGone(Exception):
    """Nobody reads stdout any more."""


class GateFailed(Exception):
    """A state that ``--fail-on`` names has begun."""


# --- lines ------------------------------------------------------------------------------------


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def window_line(update: Update, *, at: float | None, mean_confidence: float) -> dict[str, Any]:
    """The state of the stream after ``update``."""
    estimate, selection = update.estimate, update.selection
    accuracy = None
    if estimate is not None:
        accuracy = {name: getattr(estimate, name) for name in ("value", "low", "high", "level")}
    return {
        "type": "window",
        "row": update.rows,
        "at": at,
        "state": update.state,
        "statistic": _finite(update.statistic),
        "outside": _finite(update.outside),
        "temperature": _finite(update.temperature),
        "set": None if selection is None else selection.set_name,
        "mean_confidence": mean_confidence,
        "raw_mean_confidence": None if selection is None else selection.mean_confidence,
        "accuracy": accuracy,
    }


def text_of(line: dict[str, Any]) -> str:
    """A line for people; empty if it is for programs only."""
    if line["type"] == "event":
        at = "" if line["at"] is None else f" at {line['at']:.15g}"
        return f"event  row {line['row']:,}{at}  {line['kind']}: {one_line(line['message'])}"
    if line["type"] == "end" and (line["by"] != "error" or line["batches"]):
        malformed = f", {line['malformed']:,} malformed" if line["malformed"] else ""
        one, many = ("file", "files") if line["followed"] else ("batch", "batches")
        events = _tables.count_of(sum(line["events"].values()), "event")
        return (
            f"end  {_tables.count_of(line['rows'], 'row')} in {line['batches']:,} "
            f"{one if line['batches'] == 1 else many}{malformed}, {events}; "
            f"at row {line['row']:,}, {line['state']}"
        )
    if line["type"] != "window":
        return ""
    parts = [f"row {line['row']:,}", line["state"]]
    if line["temperature"] is not None:
        parts.append(f"T {_tables.temperature(line['temperature'])}")
    if line["set"] is not None:
        parts.append(f"set {one_line(line['set'])}")
    raw = line["raw_mean_confidence"]
    before = "" if raw is None else f" (raw {raw:.4f})"
    parts.append(f"confidence {line['mean_confidence']:.4f}{before}")
    if accuracy := line["accuracy"]:
        value, low, high = (accuracy[name] for name in ("value", "low", "high"))
        parts.append(f"accuracy {value:.4f} ({low:.4f} to {high:.4f})")
    return "  ".join(parts)


def confidence_lines(update: Update, first: int, ids: Sequence[str | int] | None) -> list[str]:
    """One JSON object per row, with all digits."""
    names: Sequence[str | int | None] = ids or [None] * len(update.confidence)
    rows = zip(update.confidence.tolist(), update.predicted.tolist(), names, strict=True)
    return [
        json.dumps(
            {"type": "confidence", "row": first + i, "confidence": confidence, "predicted": label}
            | ({} if name is None else {"id": name})
        )
        for i, (confidence, label, name) in enumerate(rows)
    ]


# --- Prometheus -------------------------------------------------------------------------------


class _Handler(WSGIRequestHandler):
    timeout = 5.0  # seconds without a byte after which a connection is closed

    def log_message(self, *_: object) -> None: ...


class _Server(ThreadingMixIn, WSGIServer):
    """A thread per connection, at most 32; the oldest is closed to make room."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = family[0][0]
        self._open: list[Any] = []
        self._room = threading.Condition()
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._room:
            while len(self._open) >= 32:
                with suppress(OSError):  # closed by the other side
                    self._open[0].shutdown(socket.SHUT_RDWR)
                self._room.wait()
            self._open.append(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._room:
            self._open.remove(request)
            self._room.notify()

    def handle_error(self, *_: object) -> None:
        """Ignore connections that end early."""


class Metrics:
    """Counters and gauges in a registry of their own, served over HTTP.

    Args:
        port: Port; 0 for any free one.
        host: Address to listen at.
    """

    def __init__(self, port: int, host: str) -> None:
        from shiftcal.monitoring import KINDS, STATES

        client = require("prometheus_client", extra="monitor", needed_by="--metrics-port")
        registry = client.CollectorRegistry()

        def series(kind: str, name: str, text: str, labels: Sequence[str] = (), **more: Any) -> Any:
            return getattr(client, kind)(
                f"shiftcal_{name}", text, labels, registry=registry, **more
            )

        self.rows = series("Counter", "rows", "Rows calibrated by this process.")
        self.batches = series("Counter", "batches", "Batches or files read by this process.")
        self.malformed = series("Counter", "malformed_batches", "Batches or files left out.")
        self._events = series("Counter", "events", "Changes of state, by kind.", ["kind"])
        self._state = series("Enum", "state", "State of the stream.", states=list(STATES))
        self._temperature = series("Gauge", "temperature", "Temperature of the next row.")
        self._confidence = series(
            "Gauge",
            "mean_confidence",
            "Mean confidence: raw in the window, calibrated since the line before.",
            ["kind"],
        )
        self._accuracy = series(
            "Gauge", "estimated_accuracy", "Estimated accuracy in the window.", ["bound"]
        )
        for kind in KINDS:  # a rate needs every series from the start
            self._events.labels(kind)
        for gauge in (
            *map(self._confidence.labels, ("raw", "calibrated")),
            *map(self._accuracy.labels, ("value", "low", "high")),
        ):
            gauge.set(math.nan)
        try:
            self._server = _Server(host, port)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"metrics cannot be served at {host}, port {port}: "
                f"{getattr(error, 'strerror', None) or error}. Choose another --metrics-port (0 "
                "for any free one) or --metrics-host."
            ) from error
        self._server.set_app(client.make_wsgi_app(registry))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        shown = f"[{host}]" if ":" in host else host
        complain("note", f"metrics are at http://{shown}:{self._server.server_port}/metrics")

    def update(self, monitor: Monitor, lines: Sequence[dict[str, Any]] = ()) -> None:
        """Show the state of the monitor and the lines of a batch."""
        self._state.state(monitor.state)
        temperature = monitor.running_.temperature
        self._temperature.set(math.nan if temperature is None else temperature)
        for line in lines:
            if line["type"] == "event":
                self._events.labels(line["kind"]).inc()
            elif line["type"] == "window":
                raw = line["raw_mean_confidence"]
                self._confidence.labels("raw").set(math.nan if raw is None else raw)
                self._confidence.labels("calibrated").set(line["mean_confidence"])
                for bound in ("value", "low", "high") if line["accuracy"] else ():
                    self._accuracy.labels(bound).set(line["accuracy"][bound])

    def close(self) -> None:
        """Free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


# --- files ------------------------------------------------------------------------------------


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


def read_state(path: Path, monitor: Monitor) -> Progress:
    """Load the state file into the monitor, if there is one, and return the progress."""
    if not path.exists():
        return Progress()
    document = read_document(path, "the state of a monitor", format=FORMAT, version=VERSION)
    kinds = {name: type(value) for name, value in asdict(Progress()).items()}
    content = document.get("progress")
    if not isinstance(content, dict) or {name: type(v) for name, v in content.items()} != kinds:
        raise FileError(f"{path} is damaged. Restore it from a backup, or delete it.")
    try:
        monitor.load_state_dict(document.get("monitor"))
    except InputError as error:
        raise InputError(
            f"{path} cannot be resumed: {error} Keep the monitor with --save and name that file "
            "each time, since one fitted again on a bank may differ in its last bits; or start "
            "over with another --state."
        ) from error
    complain("note", f"resuming after row {monitor.rows:,}, from {path}")
    return Progress(**content)


class ConfidencesFile:
    """A file that grows by whole batches.

    Args:
        path: The file; what is in it beyond the bytes that the state knows is cut off.
        progress: Of the state.
        durable: Whether a batch outlives a power cut.
    """

    def __init__(self, path: Path, progress: Progress, *, durable: bool) -> None:
        known = progress.confidences == str(path.resolve())
        self.path, self.size, self._durable = path, progress.acknowledged if known else 0, durable
        size = path.stat().st_size if path.is_file() else 0
        if not known and size:
            raise FileError(
                f"{path} already exists, and would mix the confidences of two runs. Name another "
                "file, delete this one, or resume with the --state it belongs to."
            )
        if size < self.size:
            raise FileError(
                f"{path} must have the {self.size} bytes that the state knows of; it has {size}. "
                "Restore it, or start over with another --state."
            )
        try:
            self._file = path.open("ab")
            self._file.truncate(self.size)
        except OSError as error:
            raise FileError(f"{path} could not be written: {error.strerror}.") from error
        flush_folder(path.parent)
        progress.confidences, progress.acknowledged = str(path.resolve()), self.size

    def append(self, lines: Sequence[str]) -> None:
        """Have lines on the disk; the file is left as it was if that fails."""
        content = "".join(f"{line}\n" for line in lines).encode()
        try:
            self._file.write(content)
            self._file.flush()
            if self._durable:
                os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            os.truncate(self.path, self.size)
            raise FileError(
                f"{self.path} could not be written: {error.strerror}. Make room, and start again."
            ) from error
        self.size += len(content)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


# --- a run ------------------------------------------------------------------------------------


class Session:
    """A monitor at work, with its outputs.

    Args:
        monitor: Fitted, with its running state.
        progress: How far earlier runs came.
        options: Of the command.
        confidences: The file of confidences, if there is one.
        metrics: Where metrics are served, if they are.
    """

    def __init__(
        self,
        monitor: Monitor,
        progress: Progress,
        options: SimpleNamespace,
        confidences: ConfidencesFile | None,
        metrics: Metrics | None,
    ) -> None:
        self.monitor, self.progress, self.options = monitor, progress, options
        self.every = options.every or monitor.window_.plan().rows
        self._confidences, self._metrics = confidences, metrics
        self._gates = {GATES[name] for name in options.fail_on or ()}
        self.rows = self.batches = self.malformed = 0
        self.events: Counter[str] = Counter()

    def take(self, item: Item) -> None:
        """Calibrate a batch and give out what follows from it, all of its rows or none."""
        lines: list[dict[str, Any]] = []
        confidences: list[str] = []
        try:
            if isinstance(item, BadBatch):
                raise item
            self._feed(item, self._checked(item), lines, confidences)
        except BadBatch as bad:
            self.malformed += 1
            if self._metrics is not None:
                self._metrics.malformed.inc()
            if self.options.on_error == "stop" or bad.final:
                raise
            complain("warning", f"left out: {bad}")
            lines.append({"type": "malformed", "where": bad.where, "message": str(bad)})
        if item.file is None:
            self.progress.items += 1
        else:
            self.progress.files.append(item.file)
        if self._confidences is not None:
            self._confidences.append(confidences)
            self.progress.acknowledged = self._confidences.size
            confidences = []
        self.print(lines, confidences)
        self.write_state()
        for line in lines:
            if line["type"] == "event" and line["kind"] in self._gates:
                raise GateFailed(f"{line['kind']} at row {line['row']:,}: {line['message']}")

    def _checked(self, batch: Batch) -> Any:
        """The logits of a batch."""
        from shiftcal.checks import GUARD_FROM, check_scores, normalize_rows

        kind, values = batch.kind or self.monitor.method_.input, batch.values
        try:
            if batch.classes is not None and self.monitor.class_names_ is not None:
                check_order(Path(batch.where), batch.classes, self.monitor.class_names_)
            if self.options.normalize and kind == "probabilities":
                values = normalize_rows(values)
            k = self.monitor.n_classes_
            return check_scores(values, input=kind, k=k, guard_from=GUARD_FROM)
        except InputError as error:
            raise BadBatch(batch.where, error, file=batch.file) from error

    def _feed(
        self, batch: Batch, logits: Any, lines: list[dict[str, Any]], confidences: list[str]
    ) -> None:
        """Feed checked rows in pieces that end where a window line is due."""
        start, n, sums = 0, len(logits), self.progress.sums
        while start < n:
            first = self.monitor.rows
            stop = min(n, start + self.every - first % self.every, start + _PIECE_ROWS)
            update = self.monitor._feed_checked(logits[start:stop], batch.at)
            if self.options.confidences is not None:
                ids = None if batch.ids is None else batch.ids[start:stop]
                confidences += confidence_lines(update, first, ids)
            for event in update.events:
                self.events[event.kind] += 1
                numbers = {
                    name: _finite(getattr(event, name)) for name in ("statistic", "threshold")
                }
                lines.append({"type": "event", **event.to_dict(), **numbers})
            sums[0] += stop - start
            sums[1] += int((update.confidence * _UNIT).round().astype("int64").sum())
            if update.rows % self.every == 0:
                mean = sums[1] / (_UNIT * sums[0])
                lines.append(window_line(update, at=batch.at, mean_confidence=mean))
                sums[:] = [0, 0]
            start = stop
        self.rows += n
        self.batches += 1
        if self._metrics is not None:
            self._metrics.rows.inc(n)
            self._metrics.batches.inc()
            self._metrics.update(self.monitor, lines)

    def print(self, lines: Sequence[dict[str, Any]], confidences: Sequence[str] = ()) -> None:
        """Write lines to stdout, flushed."""
        shown = partial(json.dumps, allow_nan=False) if self.options.as_json else text_of
        texts = [*confidences, *filter(None, map(shown, lines))]
        if texts and not say("\n".join(texts)):
            raise ReaderGone

    def print_start(self) -> None:
        """Print the first line."""
        state = self.options.state
        line = {
            "type": "start",
            "shiftcal": version("shiftcal"),
            "command": "monitor",
            "method": self.monitor.method_.name,
            "every": self.every,
            "row": self.monitor.rows,
            "state": self.monitor.state,
            "state_file": None if state is None else str(state),
        }
        self.print([line])

    def print_end(self, by: str) -> None:
        """Print the last line."""
        line = {
            "type": "end",
            "by": by,
            "rows": self.rows,
            "batches": self.batches,
            "malformed": self.malformed,
            "events": self.events,
            "row": self.monitor.rows,
            "state": self.monitor.state,
            "followed": bool(self.progress.folder),
        }
        self.print([line])

    def write_state(self) -> None:
        """Replace the state file."""
        if self.options.state is not None:
            content = {"monitor": self.monitor.state_dict(), "progress": asdict(self.progress)}
            write_document(self.options.state, content, format=FORMAT, version=VERSION)


def _run(session: Session, items: Iterator[Item], stop: Stop) -> Ended:
    """Take every item, and say how the run ended."""
    try:
        session.write_state()  # from now on it owns the file of confidences
        session.print_start()
        for item in items:
            session.take(item)
            stop.check()
        session.print_end("input")
    except ReaderGone:
        pass
    except Stopped:
        session.print_end(signal.Signals(stop.signal).name)
        return Ended(interrupted() if stop.signal == signal.SIGINT else terminated())
    except GateFailed as failed:
        session.print_end("gate")
        complain("gate failed", str(failed))
        return Ended(GATE_FAILED)
    except BadBatch:
        session.print_end("error")
        raise
    return Ended(DONE)


def _items(session: Session, options: SimpleNamespace, stop: Stop) -> Iterator[Item]:
    """What comes in, after what earlier runs have handled."""
    monitor, done, warned = session.monitor, session.progress, False
    k, names = monitor.n_classes_, monitor.class_names_
    if (folder := options.follow) is not None:
        settle = 1.0 if options.settle is None else options.settle
        for path in new_files(folder, set(done.files), stop, once=options.once, settle=settle):
            item = file_batch(path, n_classes=k, classes=names, normalize=options.normalize)
            warned = warned or warn_of_another_model(monitor.method_, Path("the monitor"), path)
            yield item
        return
    n, limits = done.items if options.replay else 0, Limits(options.max_batch_rows, k)
    items = stream_batches(open_stdin(stop), limits, options.format_)
    for seen in range(n):
        if (skipped := next(items, None)) is None:
            raise InputError(
                f"with --replay, standard input must begin with the {n:,} batches that the state "
                f"has seen; it ended after {seen:,}."
            )
        if isinstance(skipped, BadBatch) and skipped.final:
            raise skipped
    yield from items


def _check_options(options: SimpleNamespace) -> None:
    """Raise for options that contradict each other, before any work is done."""
    from shiftcal.checks import check_choice

    check_choice(options.on_error, ("stop", "skip"), name="--on-error")
    if options.format_ is not None:
        check_choice(options.format_, tuple(READERS), name="--format")
    for name in options.fail_on or ():
        check_choice(name, tuple(GATES), name="--fail-on")
    follow, host = options.follow, options.metrics_host
    waits = options.once or options.settle is not None
    for wrong, message in (
        (options.replay and options.state is None, "--replay needs --state FILE."),
        (waits and not follow, "--once and --settle need --follow DIR."),
        (follow and options.format_, "--format does not go with --follow DIR."),
        (follow and options.replay, "--replay does not go with --follow DIR."),
        (options.confidences == "-" and not options.as_json, "--confidences - needs --json."),
        (host and options.metrics_port is None, "--metrics-host needs --metrics-port N."),
        (options.window and options.half_life, "--window and --half-life exclude one another."),
    ):
        if wrong:
            raise InputError(message)
    if follow is not None and not follow.is_dir():
        raise FileError(f"{follow} is not a folder. Name the folder that scores files come into.")
    for path in (options.confidences, options.state):
        if path is not None and path != "-":
            check_output(Path(path), inputs=[options.spec])


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
    from shiftcal.cli.options import choose_settings
    from shiftcal.monitoring import Exponential, Monitor, Sliding, Window
    from shiftcal.registry import ESTIMATORS
    from shiftcal.surrogates import SurrogateBank

    method = methods.get(options.method or "rehearsal")
    settings = choose_settings(method, {}, options.set_ or [])
    estimator = options.estimator or "rehearsed"
    if estimator != "none":
        ESTIMATORS.get(estimator)  # a typo is reported before anything is fitted
    window: Window = Sliding()
    if options.half_life is not None:
        window = Exponential(half_life=options.half_life)
    elif options.window is not None:
        window = Sliding(rows=options.window)
    try:
        window.plan()
    except InputError as error:
        word = "--window" if options.half_life is None else "--half-life"
        raise InputError(f"{word}: {error}") from error
    if (save := options.save) is not None:
        check_output(save, inputs=[])
        if save.suffix.lower() != ".json":
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


def monitor(
    spec: Annotated[
        Path,
        typer.Argument(
            metavar="SPEC",
            help="A saved monitor (.json), or the folder of a surrogate bank on which one is "
            "fitted at the start.",
        ),
    ],
    follow: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Read the scores files of this folder as they appear, in the order of their "
            "names, instead of standard input.",
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="With --follow: end when all files that are there are read."),
    ] = False,
    settle: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="With --follow: seconds that a file must not have changed before it is read; "
            "default: 1. 0 if files are always renamed into place.",
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="npy|arrow|jsonl",
            help="Format of standard input; default: detected.",
        ),
    ] = None,
    max_batch_rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Reject batches with more rows.")
    ] = 65536,
    on_error: Annotated[
        str,
        typer.Option(
            metavar="stop|skip", help="What to do at a batch or file that cannot be used."
        ),
    ] = "stop",
    every: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Print a line every N rows; default: the rows of the window.",
        ),
    ] = None,
    confidences: Annotated[
        str | None,
        typer.Option(
            callback=written,
            metavar="FILE|-",
            help="Append confidence and predicted class of every row to this file as JSON lines; "
            "- for stdout, with --json.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            callback=written,
            metavar="FILE",
            help="Keep the running state here; a restart with it resumes after the last batch.",
        ),
    ] = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="With --state: standard input starts from its beginning again, so skip the "
            "batches that the state has seen.",
        ),
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="outside-bank|shift",
            help="End with status 1 as soon as that begins. Repeatable.",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=65535, help="Serve metrics for Prometheus here; 0 for any port."
        ),
    ] = None,
    metrics_host: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Address to serve them at; default: 127.0.0.1."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With a bank: method to fit; default: rehearsal."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="With a bank: a setting of the method. Repeatable."
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|none",
            help="With a bank: estimator of accuracy; default: rehearsed.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="With a bank: look at the last N rows."),
    ] = None,
    half_life: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="With a bank: let a row count half after N rows instead."
        ),
    ] = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(metavar="X", help="With a bank: false alarms to allow in 100,000 clean rows."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            callback=written, metavar="FILE", help="With a bank: keep the fitted monitor, as .json."
        ),
    ] = None,
    normalize: Normalize = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON lines on stdout, one object each with a 'type'."),
    ] = False,
) -> Ended:
    """Calibrate a stream of logits, and report when it shifts."""
    return _monitor(SimpleNamespace(**locals()))


def _monitor(options: SimpleNamespace) -> Ended:
    """The same, with the options by name."""
    _check_options(options)
    save, state, follow = options.save, options.state, options.follow
    problem = "" if follow is not None else stdin_problem()
    if problem and save is None:
        raise InputError(problem)
    fitted = _find_monitor(options)
    saved = f"the monitor is saved as {save}; there was nothing to read."
    if problem:
        complain("note", saved)
        return Ended(DONE)
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("once", InputWarning)  # not once per row
        stop = stack.enter_context(stop_on_signals())
        done = Progress()
        if state is not None:
            stack.enter_context(lock(file_to_write(state), by="`shiftcal monitor`"))
            done = read_state(state, fitted)
        folder = "" if follow is None else str(follow.resolve())
        if folder and done.folder not in ("", folder):
            raise InputError(f"{state} belongs to a monitor that follows {done.folder}.")
        done.folder = folder or done.folder
        confidences = metrics = None
        if options.confidences not in (None, "-"):
            path = Path(options.confidences)
            confidences = ConfidencesFile(path, done, durable=state is not None)
            stack.callback(confidences.close)
        if options.metrics_port is not None:
            metrics = Metrics(options.metrics_port, options.metrics_host or "127.0.0.1")
            stack.callback(metrics.close)
            metrics.update(fitted)
        session = Session(fitted, done, options, confidences, metrics)
        try:
            return _run(session, _items(session, options, stop), stop)
        except NothingCame:
            if save is None:
                raise
            complain("note", saved)
            return Ended(DONE)
