"""A run of ``shiftcal monitor``, from its options to its exit status."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from shiftcal.cli._errors import DONE, GATE_FAILED
from shiftcal.cli._interrupt import interrupted, terminated
from shiftcal.cli._monitor_confidences import ConfidencesFile
from shiftcal.cli._monitor_feeding import Feeder
from shiftcal.cli._monitor_halt import Halt, Halted
from shiftcal.cli._monitor_intake import NothingCame, standard_input
from shiftcal.cli._monitor_lines import Line, Printer, ReaderGone, start_line
from shiftcal.cli._monitor_options import Outputs, Sources
from shiftcal.cli._monitor_session import GateFailed, Session
from shiftcal.cli._monitor_sources import items_of
from shiftcal.cli._monitor_spec import Fitting, find_monitor
from shiftcal.cli._monitor_state import Progress, StateFile
from shiftcal.cli._report import Ended
from shiftcal.cli._streams import complain
from shiftcal.errors import InputError, InputWarning, ShiftcalError

if TYPE_CHECKING:
    from shiftcal.cli._monitor_batches import Item
    from shiftcal.monitoring import Monitor


def watch(spec: Path, fitting: Fitting, sources: Sources, outputs: Outputs) -> Ended:
    """Feed a monitor until the input ends, or something else ends it.

    Args:
        spec: What the monitor is, or is fitted on.
        fitting: How it is fitted.
        sources: Where batches come from.
        outputs: What is given out.
    """
    sources.check(state=outputs.state)
    outputs.check(spec)
    try:
        stream = None if sources.follow is not None else standard_input()
    except InputError:
        if fitting.save is None:
            raise
        find_monitor(spec, fitting)
        return _saved(fitting)
    monitor = find_monitor(spec, fitting)
    with ExitStack() as stack:
        halt = Halt()
        stack.enter_context(halt.listening())
        session = _session(stack, monitor, sources, outputs)
        items = items_of(sources, session, halt, stream)
        # A row that looks like probabilities is told of once, not once a row.
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("once", InputWarning)
        try:
            return _ended(session, items, halt, _start(monitor, session, outputs))
        except NothingCame:
            if fitting.save is None:
                raise
            return _saved(fitting)


def _saved(fitting: Fitting) -> Ended:
    complain("note", f"the monitor is saved as {fitting.save}; there was nothing to read.")
    return Ended(DONE)


def _session(stack: ExitStack, monitor: Monitor, sources: Sources, outputs: Outputs) -> Session:
    """All that is written to, opened, with what an earlier run left."""
    state, progress = None, Progress()
    if outputs.state is not None:
        state = StateFile(outputs.state)
        stack.enter_context(state.locked())
        progress = _continued(state, monitor)
    folder = None if sources.follow is None else str(sources.follow.resolve())
    if folder is not None and progress.folder not in (None, folder):
        raise InputError(
            f"{outputs.state} is the state of a monitor that follows {progress.folder}; got "
            f"{folder}. Name that folder, or another --state."
        )
    progress.folder = folder or progress.folder
    confidences, metrics = _confidences(outputs.file, progress), None
    if confidences is not None:
        stack.callback(confidences.close)
    if outputs.metrics_port is not None:
        from shiftcal.cli._monitor_metrics import Metrics

        metrics = Metrics(port=outputs.metrics_port, host=outputs.metrics_host or "127.0.0.1")
        stack.callback(metrics.close)
        # What an earlier run came to holds until a batch says otherwise.
        metrics.fed(0, monitor.state, monitor.running_.temperature)
        complain("note", f"metrics are at {metrics.address}")
    feeder = Feeder(
        monitor,
        progress,
        every=outputs.every or monitor.window_.plan().rows,
        confidences=confidences,
        print_confidences=outputs.to_stdout,
        metrics=metrics,
    )
    return Session(
        feeder,
        Printer(as_json=outputs.as_json),
        state=state,
        skip=sources.on_error == "skip",
        fail_on=outputs.gates,
    )


def _confidences(file: Path | None, progress: Progress) -> ConfidencesFile | None:
    """The file of confidences, if one is wanted, behind what earlier runs acknowledged in it."""
    if file is None:
        progress.confidences, progress.acknowledged = None, 0
        return None
    name = str(file.resolve())
    known = progress.acknowledged if progress.confidences == name else None
    opened = ConfidencesFile(file, known)
    progress.confidences, progress.acknowledged = name, opened.size
    return opened


def _continued(state: StateFile, monitor: Monitor) -> Progress:
    """How far the run came that wrote the state; the monitor stands there then."""
    found = state.read()
    if found is None:
        return Progress()
    try:
        monitor.load_state_dict(found[0])
    except InputError as error:
        raise InputError(
            f"{state.path} cannot be gone on with: {error} Keep the monitor with --save and name "
            "that file each time, since one that is fitted on a bank anew may differ in its last "
            "bits; or begin anew with another --state."
        ) from error
    complain("note", f"going on after row {monitor.rows:,}, as {state.path} says")
    return found[1]


def _start(monitor: Monitor, session: Session, outputs: Outputs) -> Line:
    return start_line(
        method=monitor.method_.name(),
        every=session.feeder.every,
        row=monitor.rows,
        state=monitor.state,
        state_file=None if outputs.state is None else str(outputs.state),
    )


def _ended(session: Session, items: Iterator[Item], halt: Halt, start: Line) -> Ended:
    """Take everything, and say how it ended."""
    try:
        session.begin(start)
        for item in items:
            session.take(item)
            halt.check()
        session.finish(_end(session, "input"))
        return Ended(DONE)
    except ReaderGone:
        return Ended(DONE)
    except Halted:
        session.finish(_end(session, signal.Signals(halt.number).name))
        return Ended(interrupted() if halt.number == signal.SIGINT else terminated())
    except GateFailed as failed:
        session.finish(_end(session, "gate"))
        complain("gate failed", str(failed))
        return Ended(GATE_FAILED)
    except ShiftcalError:
        session.finish(_end(session, "error"))
        raise


def _end(session: Session, by: str) -> Line:
    monitor = session.feeder.monitor
    return {
        "type": "end",
        "by": by,
        **asdict(session.feeder.counts),
        "row": monitor.rows,
        "state": monitor.state,
        "followed": session.progress.folder is not None,
    }
