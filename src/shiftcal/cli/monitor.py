"""``shiftcal monitor``: a stream of logits in, lines, events and calibrated confidences out.

Every batch is calibrated, appended to the file of confidences, printed, and then recorded in the
state file, a SQLite database, in one transaction. A run that is killed at any moment repeats at
most the batch it was working on: the file of confidences is cut back to what the state knows, and
lines may be printed twice, never lost.
"""

from __future__ import annotations

import io
import json
import math
import os
import signal
import sqlite3
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from shiftcal.cli import options as kinds
from shiftcal.cli.inputs import check_order, check_suffix, choose_settings, load_fitted
from shiftcal.cli.output import (
    DONE,
    GATE_FAILED,
    complain,
    interrupted,
    one_line,
    progress,
    say,
    terminated,
)
from shiftcal.cli.stream import BadBatch, RowBatch, batch_of, new_files, stdin_batches
from shiftcal.errors import FileError, InputError, InputWarning, require
from shiftcal.files import checksum_of, file_to_write, flush_folder, lock

if TYPE_CHECKING:
    from shiftcal.monitoring import Event, Monitor, Update

# Values of --fail-on, and the events that they name.
GATES = {"outside-bank": "outside-bank", "shift": "shift-began"}
# Of the state file, in the header of the database.
APPLICATION, VERSION = 0x5343_4D52, 4
# Confidences are summed as whole numbers of 2**-32, so the sum does not depend on the batches.
_UNIT = 1 << 32
_LABEL_BYTES = 1 << 16  # of a file of labels, read at once: some 10 ms of work


class Terminated(KeyboardInterrupt):
    """SIGTERM asks to stop."""


@dataclass(kw_only=True)
class Options:
    """The options of the command.

    Attributes:
        spec: A saved monitor (.json), or a bank's folder to fit one on first.
        follow: Read the scores files of this folder as they appear, by name.
        once: With --follow: end when all files are read.
        settle: With --follow: seconds without a change after which a file counts as complete.
        listen: Accept rows over HTTP: POST /rows. Only loopback works without $SHIFTCAL_TOKEN.
        labels_follow: Read late labels from this growing file of JSON lines with id and label.
        on_error: What to do about a batch, file or label that cannot be used.
        every: Rows per printed line; default: the size of the window.
        confidences: Append every row's confidence and class here as JSON lines; - for stdout.
        state: Keep the running state here; a restart with it resumes after the last batch.
        replay: With --state: stdin starts from its beginning; skip what was seen.
        fail_on: End with status 1 as soon as this state begins. Repeatable.
        metrics_port: Serve Prometheus metrics at this port; 0 for any free one.
        metrics_host: With --metrics-port: the address to serve at.
        method: With a bank: method; default: rehearsal.
        set_: With a bank: a setting of the method. Repeatable.
        estimator: With a bank: estimator of accuracy; default: rehearsed.
        window: With a bank: use the last N rows.
        false_alarms: With a bank: false alarms per 100,000 clean rows.
        waiting: With a bank: predictions kept for late labels; default: 100,000.
        save: With a bank: save the fitted monitor as .json.
        normalize: Rescale rounded probabilities to sum to 1; logits do not change.
        as_json: Print JSON lines, one object each with a 'type'.
    """

    spec: Annotated[Path, Argument(metavar="MONITOR.json|BANK")]
    follow: kinds.Folder = None
    once: bool = False
    settle: Annotated[float, Option(metavar="SECONDS", min=0)] = 1.0
    listen: Annotated[str | None, Option(metavar="HOST:PORT")] = None
    labels_follow: Annotated[Path | None, Option(metavar="FILE")] = None
    on_error: Literal["stop", "skip"] = "stop"
    every: kinds.MaybeCount = None
    confidences: Annotated[Path | None, Option(metavar="FILE|-")] = None
    state: kinds.File = None
    replay: bool = False
    fail_on: Annotated[list[str] | None, Option(metavar="|".join(GATES))] = None
    metrics_port: Annotated[int | None, Option(metavar="N", min=0, max=65535)] = None
    metrics_host: Annotated[str, Option(metavar="HOST")] = "127.0.0.1"
    method: kinds.Name = None
    set_: kinds.Settings = None
    estimator: Annotated[str | None, Option(metavar="NAME|none")] = None
    window: kinds.MaybeCount = None
    false_alarms: Annotated[float | None, Option(metavar="X")] = None
    waiting: kinds.MaybeCount = None
    save: kinds.File = None
    normalize: bool = False
    as_json: Annotated[bool, Option("--json")] = False


def monitor(options: Options) -> int:
    """Calibrate a stream, and report when it shifts.

    Example:
        shiftcal monitor bank/ --follow scores/ --state monitor.state
    """
    from shiftcal.checks import check_choice

    if options.follow is not None and not options.follow.is_dir():
        raise FileError(f"{options.follow} is not a folder. Name the one that files come into.")
    for name in options.fail_on or ():
        check_choice(name, tuple(GATES), name="--fail-on")
    if options.listen is not None and (options.follow or options.replay):
        raise InputError("--listen takes rows over HTTP only. Leave --follow and --replay out.")
    service = None
    if options.listen is not None:
        from shiftcal.cli.serve import Service

        service = Service(options.listen)  # rejects an address or token before any work
    fitted = _find_monitor(options)
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("once", InputWarning)  # not once per row
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGTERM, _terminate)
            stack.callback(signal.signal, signal.SIGTERM, before)
        if options.state is not None:
            stack.enter_context(lock(file_to_write(options.state), by="`shiftcal monitor`"))
        run = MonitorRun(fitted, options, stack)
        return run.go(None if service is None else service.serve)


def _terminate(*_: object) -> None:
    raise Terminated


def _find_monitor(options: Options) -> Monitor:
    """The saved monitor, or one fitted on the bank that is named instead."""
    from shiftcal.monitoring import Monitor

    if options.spec.is_dir():
        return _fit_monitor(options)
    rule = "The first argument must be a saved monitor (.json), or the folder of a bank."
    if options.spec.is_file() and options.spec.suffix.lower() != ".json":
        raise FileError(
            f"{options.spec} is not a monitor. {rule} Scores come in on standard input, or as "
            "files in a folder: --follow DIR."
        )
    monitor = load_fitted(options.spec, Monitor, rule)
    names = ("method", "set_", "estimator", "window", "false_alarms", "waiting", "save")
    if given := [name for name in names if getattr(options, name)]:
        shown = ", ".join(f"--{name.strip('_').replace('_', '-')}" for name in given)
        raise InputError(f"{shown}: only for fitting on the folder of a bank.")
    return monitor


def _fit_monitor(options: Options) -> Monitor:
    from shiftcal import methods
    from shiftcal.monitoring import Monitor, Sliding
    from shiftcal.registry import ESTIMATORS
    from shiftcal.surrogates import SurrogateBank

    method = methods.get(options.method or "rehearsal")
    settings = choose_settings(method, {}, options.set_)
    estimator = options.estimator or "rehearsed"
    if options.save is not None:
        check_suffix(options.save, ".json")
    with progress(f"fitting a monitor on {options.spec} ..."):
        bank = SurrogateBank.load(options.spec, normalize=options.normalize)
        monitor = Monitor(
            method(input=bank.input, **settings),
            estimator=None if estimator == "none" else ESTIMATORS.canonical(estimator),
            window=Sliding() if options.window is None else Sliding(rows=options.window),
            false_alarms=1.0 if options.false_alarms is None else options.false_alarms,
            waiting=options.waiting or 100_000,
        ).fit(bank)
    if options.save is not None:
        monitor.save(options.save)
        complain("note", f"the monitor is saved as {options.save}")
    return monitor


@dataclass
class Progress:
    """How far the input has been read, by all runs together.

    Attributes:
        items: Batches but for files, malformed ones included.
        folder: The followed folder.
        files: Names of its files that are done.
        confidences: The file of confidences.
        acknowledged: Bytes of it that belong to this state.
        labels: The file of labels.
        labels_read: Bytes of it that have been read.
        sums: ``[rows, confidence]`` since the last window line, the latter in units of 2**-32.
    """

    items: int = 0
    folder: str = ""
    files: list[str] = field(default_factory=list)
    confidences: str = ""
    acknowledged: int = 0
    labels: str = ""
    labels_read: int = 0
    sums: list[int] = field(default_factory=lambda: [0, 0])


class StateFile:
    """Everything a restart needs, in one transaction for each commit: a SQLite database.

    Predictions that wait for labels are rows of a table, so that a commit writes what is new.

    Args:
        path: The file; it is made by the first :meth:`write`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db: sqlite3.Connection | None = None
        self._rows = 0  # of the stream, whose predictions it has

    def read(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """What :meth:`Monitor.state_dict` gave, and the progress; ``None`` if there is no state.

        Raises:
            FileError: If it is damaged or something else.
        """
        if not self.path.exists():
            return None
        try:
            db = self._open()
            if db.execute("select 1 from sqlite_master").fetchone() is None:
                return None  # killed before the first write
            (ours,) = db.execute("pragma application_id").fetchone()
            (version,) = db.execute("pragma user_version").fetchone()
            if (ours, version) != (APPLICATION, VERSION):
                raise FileError(
                    f"{self.path} is not the state of a monitor of this version of shiftcal. Start "
                    "over with another --state."
                )
            ((fault,),) = db.execute("pragma quick_check(1)").fetchall()
            ((text,),) = db.execute("select document from state").fetchall()
            document = json.loads(text)
            if fault != "ok" or document.pop("checksum") != checksum_of(document):
                raise sqlite3.DatabaseError("its checksum does not match its content")
            state, progress = document["monitor"], document["progress"]
            rows = db.execute("select id, row, predicted, confidence from waiting order by row")
            state["running"]["ledger"]["waiting"] = {key: entry for key, *entry in rows}
            self._rows = state["running"]["rows"]
            return state, progress
        except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileError(
                f"{self.path} is not the state of a monitor, or it is damaged ({error}). Restore "
                "it, or start over with another --state."
            ) from error

    def write(self, monitor: Monitor, progress: Progress, answered: Iterable[int] = ()) -> None:
        """Replace the document, and bring the waiting predictions up to date.

        Args:
            monitor: With all its predictions that wait.
            progress: Of the input.
            answered: Rows that have their labels since the last time.
        """
        document = {"monitor": monitor._state_without_waiting(), "progress": asdict(progress)}
        text = json.dumps({**document, "checksum": checksum_of(document)}, allow_nan=False)
        waiting = monitor._ledger.waiting
        newest = takewhile(lambda item: item[1][0] >= self._rows, reversed(waiting.items()))
        new = [(row, key, *rest) for key, (row, *rest) in newest]
        (oldest, *_) = next(iter(waiting.values()), (monitor.rows,))
        try:
            db = self._db or self._open()
            db.execute("begin immediate")
            with db:  # commits, or rolls back
                new_file = db.execute("pragma user_version").fetchone() == (0,)
                if new_file:
                    db.execute(f"pragma application_id = {APPLICATION}")
                    db.execute(f"pragma user_version = {VERSION}")
                    db.execute("create table state (document text)")
                    db.execute("insert into state values ('')")
                    db.execute(
                        "create table waiting "
                        "(row integer primary key, id text, predicted integer, confidence real)"
                    )
                db.execute("update state set document = ?", (text,))
                db.executemany("insert into waiting values (?, ?, ?, ?)", reversed(new))
                db.executemany("delete from waiting where row = ?", ((row,) for row in answered))
                db.execute("delete from waiting where row < ?", (oldest,))
            if new_file:  # a power cut must not leave confidences without a state
                db.execute("pragma wal_checkpoint(truncate)")
        except sqlite3.Error as error:
            raise FileError(
                f"{self.path} could not be written: {error}. Make room, and start again."
            ) from error
        self._rows = monitor.rows

    def close(self) -> None:
        """Put everything into the one file."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()

    def _open(self) -> sqlite3.Connection:
        db = self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        db.execute("pragma trusted_schema = off")
        # One process has the file, and needs no shared memory.
        db.execute("pragma locking_mode = exclusive")
        (ours,) = db.execute("pragma application_id").fetchone()
        if ours in (0, APPLICATION):
            db.execute("pragma journal_mode = wal")
            # What is written survives the end of the process. A flush to the disk is for power
            # cuts: with every move from the log to its place, 32 MB each, not with every commit.
            db.execute("pragma synchronous = normal")
            db.execute("pragma wal_autocheckpoint = 8192")
        return db


class MonitorRun:
    """A monitor at work, with its outputs.

    Args:
        monitor: Fitted, with its running state.
        options: Of the command.
        stack: Closes what is opened.
    """

    def __init__(self, monitor: Monitor, options: Options, stack: ExitStack) -> None:
        self.monitor, self.options = monitor, options
        self.every = options.every or monitor.window_.plan().rows
        self._state = None if options.state is None else StateFile(options.state)
        if self._state is not None:
            stack.callback(self._state.close)
        self.progress = self._read_state()
        folder = "" if options.follow is None else str(options.follow.resolve())
        if folder and self.progress.folder not in ("", folder):
            raise InputError(f"{options.state} belongs to a monitor of {self.progress.folder}.")
        self.progress.folder = folder or self.progress.folder
        self._file: Any = None
        if options.confidences not in (None, Path("-")):
            self._file = stack.enter_context(self._open_confidences(options.confidences))
        self._gates = {GATES[name] for name in options.fail_on or ()}
        self.rows = self.batches = self.malformed = 0
        self.events: Counter[str] = Counter()
        self.window: dict[str, Any] = {}  # the last line about a window
        self.failed = ""  # why a gate failed
        self._answered: list[int] = []  # rows that no longer wait, but in the state
        if options.labels_follow is not None:
            if not options.labels_follow.exists():
                complain("note", f"labels are awaited in {options.labels_follow}")
            labels = str(options.labels_follow.resolve())
            if self.progress.labels != labels:
                self.progress.labels, self.progress.labels_read = labels, 0
        if options.metrics_port is not None:
            self._serve_metrics(options.metrics_host, options.metrics_port, stack)

    def _read_state(self) -> Progress:
        """Load the state file into the monitor, if there is one."""
        found = None if self._state is None else self._state.read()
        if found is None:
            return Progress()
        path, (state, read) = self.options.state, found
        try:
            self.monitor.load_state_dict(state)
            done = Progress(**read)
        except (InputError, TypeError) as error:
            raise InputError(
                f"{path} cannot be resumed: {error} Keep the monitor with --save and name that "
                "file each time, or start over with another --state."
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

    def _serve_metrics(self, host: str, port: int, stack: ExitStack) -> None:
        """Serve the state of the run for Prometheus."""
        client = require("prometheus_client", extra="monitor", needed_by="--metrics-port")
        registry = client.CollectorRegistry()
        registry.register(self)
        try:
            server, _ = client.start_http_server(port, addr=host, registry=registry)
        except OSError as error:
            raise InputError(
                f"metrics cannot be served at {host}, port {port}: {error}. Choose another "
                "--metrics-port (0 for any free one) or --metrics-host."
            ) from error
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        complain("note", f"metrics are at http://{host}:{server.server_port}/metrics")

    def collect(self) -> Iterator[Any]:
        """Every series, when Prometheus asks."""
        from prometheus_client import core

        from shiftcal.monitoring import KINDS, STATES

        counter, gauge = core.CounterMetricFamily, core.GaugeMetricFamily
        monitor, window, accuracy = self.monitor, self.window, self.window.get("accuracy") or {}
        yield counter("shiftcal_rows", "Rows calibrated by this process.", self.rows)
        yield counter("shiftcal_batches", "Batches or files read by this process.", self.batches)
        yield counter("shiftcal_malformed_batches", "Batches or files left out.", self.malformed)
        states: dict[str, bool] = {state: state == monitor.state for state in STATES}
        yield core.StateSetMetricFamily("shiftcal_state", "State of the stream.", states)
        temperature = monitor.running_.temperature
        yield gauge("shiftcal_temperature", "Of the next row.", temperature or math.nan)
        realised = monitor.realised
        yield counter("shiftcal_labels", "Labels that met their prediction.", realised.labelled)
        yield counter("shiftcal_unknown_labels", "Labels without prediction.", realised.unknown)
        yield gauge("shiftcal_waiting_rows", "Predictions kept for labels.", realised.waiting)
        yield gauge("shiftcal_label_delay_rows", "Mean delay of labels.", realised.delay)
        yield gauge("shiftcal_labels_agree", "1 if labels fit the estimate.", realised.agree)
        means = {"raw": "raw_mean_confidence", "calibrated": "mean_confidence"}
        of_means = {kind: window.get(key) or math.nan for kind, key in means.items()}
        bounds = {bound: accuracy.get(bound, math.nan) for bound in ("value", "low", "high")}
        of_kinds = {kind: self.events[kind] for kind in KINDS}
        same = {"value": realised.estimated, "low": realised.estimated_low}
        same["high"] = realised.estimated_high
        real = {"value": realised.accuracy, "low": realised.low, "high": realised.high}
        if not realised.n:
            real = dict.fromkeys(real, math.nan)
        errors = {"realised": realised.ece, "expected": realised.expected_ece}
        for series, name, about, label, values in (
            (counter, "events", "Changes of state.", "kind", of_kinds),
            (gauge, "mean_confidence", "Raw in the window; calibrated lately.", "kind", of_means),
            (gauge, "estimated_accuracy", "Accuracy in the window.", "bound", bounds),
            (gauge, "realised_accuracy", "Accuracy of the labelled rows.", "bound", real),
            (gauge, "labelled_estimate", "Estimate for the labelled rows.", "bound", same),
            (gauge, "ece", "Of the labelled rows; expected if calibrated.", "kind", errors),
        ):
            family = series(f"shiftcal_{name}", about, labels=[label])
            for key, value in values.items():
                family.add_metric([key], value)
            yield family

    def go(self, serve: Callable[[MonitorRun], None] | None) -> int:
        """Take every item until the input, a signal, an error or a gate ends it.

        Args:
            serve: Commits what comes over HTTP, instead of the items of other input.
        """
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
            if serve is not None:
                serve(self)
            else:
                for item in self.items():
                    self.commit([] if item is None else [item])
                    if self.failed:
                        break
                while not self.failed and self.commit([]) is not None:
                    pass  # labels that came meanwhile
            if self.failed:
                self.print_end("gate")
                complain("gate failed", self.failed)
                return GATE_FAILED
            self.print_end("input")
        except BrokenPipeError:  # nobody reads stdout any more
            pass
        except KeyboardInterrupt as stopped:
            asked = isinstance(stopped, Terminated)
            self.print_end("SIGTERM" if asked else "SIGINT")
            return terminated() if asked else interrupted()
        except BadBatch:
            self.malformed += 1
            self.print_end("error")
            raise
        return DONE

    def items(self) -> Iterator[RowBatch | BadBatch | None]:
        """The input, after what earlier runs have handled; ``None`` while there is none."""
        if self.options.follow is not None:
            yield from self._file_batches(self.options.follow)
            return
        there = sys.stdin is not None and not sys.stdin.closed and not sys.stdin.isatty()
        raw: Any = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer) if there else io.BytesIO()
        stream = io.BufferedReader(raw, 1 << 18)
        if not stream.peek(1):
            if self.options.save is None:
                raise InputError(
                    "standard input has no batches. Send logits, as in `shiftcal monitor BANK < "
                    "stream.npy`, or follow a folder of scores files with --follow."
                )
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

    def _file_batches(self, folder: Path) -> Iterator[RowBatch | BadBatch | None]:
        """All rows of each scores file of the followed folder as one batch."""
        from shiftcal.scores import read_scores

        done, options = set(self.progress.files), self.options
        for path in new_files(folder, done, once=options.once, settle=options.settle):
            if path is None:
                yield None
                continue
            try:
                yield batch_of(read_scores(path), str(path), path.name)
            except InputError as error:
                yield BadBatch(str(path), error, path.name)

    def commit(self, items: Sequence[RowBatch | BadBatch]) -> list[tuple[int, Any, Any]] | None:
        """Calibrate batches, read labels that are there, and write it all; one atomic step.

        A batch is taken as a whole or not at all. ``failed`` says why a gate failed.

        Returns:
            First row, confidences and predicted classes for every batch; ``None`` if there were
            neither batches nor labels.
        """
        lines: list[dict[str, Any]] = []
        confidences: list[str] = []
        answers = []
        for item in items:
            try:
                if isinstance(item, BadBatch):
                    raise item
                logits = item.values if item.checked else self.check(item)
                answers.append(self._feed(item, logits, lines, confidences))
            except BadBatch as bad:
                self._leave_out(bad, lines)
            if item.file is not None:
                self.progress.files.append(item.file)
            else:
                self.progress.items += 1
        if not (self._take_labels(lines) or items):
            return None
        if self._file is not None:
            self._append(confidences)
            confidences = []
        self.print(lines, confidences)
        self.write_state()
        for line in lines:
            if line["type"] == "event" and line["kind"] in self._gates:
                self.failed = f"{line['kind']} at row {line['row']:,}: {line['message']}"
        return answers

    def _leave_out(self, bad: BadBatch, lines: list[dict[str, Any]]) -> None:
        if self.options.on_error == "stop":
            raise bad
        self.malformed += 1
        complain("warning", f"left out: {bad}")
        lines.append({"type": "malformed", "where": bad.where, "message": str(bad)})

    def check(self, batch: RowBatch) -> Any:
        """The logits of a batch."""
        from shiftcal.checks import check_scores, normalize_rows

        monitor, values = self.monitor, batch.values
        kind = batch.kind or monitor.method_.input
        try:
            check_order(Path(batch.where), batch.classes, monitor.class_names_)
            if self.options.normalize and kind == "probabilities":
                values = normalize_rows(values)
            return check_scores(values, input=kind, k=monitor.n_classes_)
        except InputError as error:
            raise BadBatch(batch.where, error, batch.file) from error

    def _feed(
        self, batch: RowBatch, logits: Any, lines: list[dict[str, Any]], confidences: list[str]
    ) -> tuple[int, Any, Any]:
        """Feed checked rows in pieces that end where a window line is due."""
        import numpy as np

        start, n, sums, begin = 0, len(logits), self.progress.sums, self.monitor.rows
        updates = []
        while start < n:
            first = self.monitor.rows
            stop = min(n, start + self.every - first % self.every)
            ids = None if batch.ids is None else batch.ids[start:stop]
            kept: Sequence[Any] | None = None
            if self.options.labels_follow is not None:
                kept = ids or range(first, first + stop - start)
                self._forget(kept)
            update = self.monitor._feed_checked(logits[start:stop], batch.at, ids=kept)
            updates.append(update)
            if self.options.confidences is not None:
                confidences += confidence_lines(update, first, ids)
            self._add_events(update.events, lines)
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
        found = zip(*((update.confidence, update.predicted) for update in updates), strict=True)
        confidence, predicted = (np.concatenate(parts) for parts in found)
        return begin, confidence, predicted

    def _add_events(self, events: Sequence[Event], lines: list[dict[str, Any]]) -> None:
        for event in events:
            self.events[event.kind] += 1
            lines.append({"type": "event", **event.to_dict()})

    def _take_labels(self, lines: list[dict[str, Any]]) -> bool:
        """Compare the labels that the file of labels has gained; whether there were any."""
        path, done = self.options.labels_follow, self.progress
        if path is None or not path.exists():
            return False
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size < done.labels_read:
                complain("warning", f"{path} has become shorter; it is read from its beginning")
                done.labels_read = 0
            file.seek(done.labels_read)
            content = file.read(_LABEL_BYTES)
        whole = content[: content.rfind(b"\n") + 1]
        if not whole and len(content) == _LABEL_BYTES:
            raise BadBatch(str(path), "a line must have an id and a label; got one without an end.")
        if not whole:
            return False
        names, labels = [], []
        at = done.labels_read
        for line in whole.splitlines(keepends=True):
            try:
                if line.strip():
                    name, label = self._label(line)
                    names.append(name)
                    labels.append(label)
            except (ValueError, RecursionError) as error:
                self._leave_out(BadBatch(f"{path}, byte {at}", error), lines)
            at += len(line)
        self._forget(names)
        monitor, before = self.monitor, self.monitor.realised
        self._add_events(monitor.add_labels(names, labels), lines)
        found = monitor.realised
        if found.unknown and not before.unknown:
            complain(
                "warning",
                f"{path} has labels that match no prediction: they came before their row, a second "
                f"time, or more than {monitor.waiting:,} rows late. They are counted as unknown.",
            )
        if before.labelled // self.every < found.labelled // self.every:
            about = {"row": monitor.rows, "state": monitor.state}
            lines.append({"type": "labels", **about, **found.to_dict()})
        done.labels_read += len(whole)
        return True

    def _label(self, line: bytes) -> tuple[Any, int]:
        """Id and class of a line of the file of labels."""
        value, classes = json.loads(line), self.monitor.class_names_ or ()
        fields = value if isinstance(value, dict) else {}
        name, label = fields.get("id"), fields.get("label")
        if label in classes:
            label = classes.index(label)
        k = self.monitor.n_classes_
        if type(name) not in (str, int) or type(label) is not int or not 0 <= label < k:
            raise ValueError(
                f'a line must be {{"id": .., "label": ..}} with a class from 0 to {k - 1}'
                f"{' or its name' * bool(classes)}; got {json.dumps(value)[:60]}"
            )
        return name, label

    def _append(self, confidences: list[str]) -> None:
        """Have lines on the disk, before the state knows of them."""
        try:
            self._file.write("".join(f"{line}\n" for line in confidences).encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):  # of what is buffered
                self._file.close()
            raise FileError(
                f"{self.options.confidences} could not be written: {error.strerror}. Make room, "
                "and start again."
            ) from error
        self.progress.acknowledged = self._file.tell()

    def _forget(self, names: Iterable[Any]) -> None:
        """Note rows that stop waiting: their labels are here, or their ids come again."""
        waiting = self.monitor._ledger.waiting
        self._answered += [waiting[key][0] for key in map(str, names) if key in waiting]

    def write_state(self) -> None:
        """Bring the state file up to date."""
        if self._state is not None:
            self._state.write(self.monitor, self.progress, self._answered)
        self._answered = []

    def print(self, lines: list[dict[str, Any]], confidences: list[str]) -> None:
        """Write lines to stdout, flushed."""
        show: Any = json.dumps if self.options.as_json else text_of
        texts = [*confidences, *filter(None, map(show, lines))]
        if texts and not say("\n".join(texts)):
            raise BrokenPipeError

    def print_about(self, kind: str, **facts: Any) -> None:
        """Print the first or the last line."""
        where = {"row": self.monitor.rows, "state": self.monitor.state}
        self.print([{"type": kind, **facts, **where}], [])

    def print_end(self, by: str) -> None:
        """Print the last line."""
        names = ("rows", "batches", "malformed", "events")
        counts = {name: getattr(self, name) for name in names}
        self.print_about("end", by=by, **counts, followed=bool(self.progress.folder))


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
    if line["type"] in ("start", "malformed"):
        return ""
    row, state = f"row {line['row']:,}", line["state"]
    if line["type"] == "event":
        return f"event  {row}  {line['kind']}: {line['message']}"
    if line["type"] == "end":
        counts = (f"{name} {line[name]:,}" for name in ("rows", "batches", "malformed"))
        return "  ".join(["end", *counts, f"events {sum(line['events'].values())}", state])
    if line["type"] == "labels":
        return (
            "labels {labelled:,}  realised accuracy {accuracy:.4f} ({low:.4f} to {high:.4f})  "
            "estimated {estimated:.4f} ({estimated_low:.4f} to {estimated_high:.4f})  "
            "ECE {ece:.4f}, {expected_ece:.4f} expected  {delay:,.0f} rows late".format(**line)
        )
    parts = [row, state]
    if line["temperature"] is not None:
        parts.append(f"T {line['temperature']:.3f}")
    if line["set"] is not None:
        parts.append(f"set {one_line(line['set'])}")
    parts.append(f"confidence {line['mean_confidence']:.4f}")
    if accuracy := line["accuracy"]:
        parts.append("accuracy {value:.4f} ({low:.4f} to {high:.4f})".format(**accuracy))
    return "  ".join(parts)
