"""What was done, acknowledged in an order that survives a kill."""

from __future__ import annotations

import time

from shiftcal.cli._monitor_batches import Broken, Item
from shiftcal.cli._monitor_feeding import Feeder
from shiftcal.cli._monitor_lines import Line, Printer, broken_line
from shiftcal.cli._monitor_state import StateFile
from shiftcal.cli._streams import complain
from shiftcal.errors import InputError

# Seconds that what is done may wait for its commit, which costs a few writes to the disk.
_WAIT = 0.5


class GateFailed(Exception):
    """A state that ``--fail-on`` names has been entered."""


class Session:
    """Takes what comes in, and commits what came of it.

    A commit writes confidences, then the state, then stdout. So nothing that the state or stdout
    tells is lost, and what is done again after a kill had not been acknowledged.

    Args:
        feeder: Feeds the monitor.
        printer: Writes to stdout.
        state: Where the state is kept, if anywhere.
        skip: Whether to go on after a broken batch.
        fail_on: Kinds of events that end it.
    """

    def __init__(
        self,
        feeder: Feeder,
        printer: Printer,
        *,
        state: StateFile | None = None,
        skip: bool = False,
        fail_on: frozenset[str] = frozenset(),
    ) -> None:
        self.feeder, self.progress = feeder, feeder.progress
        self._printer, self._state = printer, state
        self._skip, self._fail_on = skip, fail_on
        self._dirty, self._unconfirmed = False, False
        # Whether a write has failed, or is under way: nothing may be acknowledged then.
        self._half_done = False
        self._committed = time.monotonic()

    def begin(self, line: Line) -> None:
        """Print the first line, and what a killed run may have left unprinted, marked so.

        Raises:
            GateFailed: If an event among the latter fails.
        """
        self._write_state()  # from now on it owns the file of confidences, were it killed at once
        repeated = [{**each, "repeated": True} for each in self.progress.lines]
        self._printer.lines([line, *repeated])
        self._unconfirmed = bool(repeated)
        self.confirm()
        self._check_gate(repeated)

    def take(self, item: Item) -> None:
        """Deal with a batch, a file, or what is none.

        Raises:
            InputError: If it is broken, unless such are to be skipped and the next can be read.
            GateFailed: If a state was entered that fails.
        """
        before = len(self.feeder.lines)
        self._half_done = True
        broken = item if isinstance(item, Broken) else self.feeder.feed(item)
        self._half_done = False
        if broken is not None:
            self._leave_out(broken)
        if item.file is None:
            self.progress.items += 1
        else:
            self.progress.files.append(item.file)
        self._dirty = True
        new = self.feeder.lines[before:]
        if self._is_due(new):
            self.commit()
        self._check_gate(new)

    def idle(self) -> float | None:
        """There is nothing to read just now; gives when to ask again, ``None`` for not at all."""
        if self._dirty:
            left = self._committed + _WAIT - time.monotonic()
            if left > 0:
                return left
            self.commit()
        self.confirm()
        return None

    def commit(self) -> None:
        """Acknowledge all that was done."""
        lines, rows = self.feeder.lines, self.feeder.rows
        self._half_done = True
        if self.feeder.confidences is not None:
            self.progress.acknowledged = self.feeder.confidences.commit()
        self.progress.lines = lines
        self._write_state()
        self.feeder.lines, self.feeder.rows = [], []
        self._dirty, self._unconfirmed = False, bool(lines)
        self._committed = time.monotonic()
        self._printer.texts(rows)
        self._printer.lines(lines)
        self._half_done = False

    def confirm(self) -> None:
        """Have the state say that its lines were printed."""
        if self._unconfirmed:
            self.progress.lines = []
            self._write_state()
            self._unconfirmed = False

    def finish(self, line: Line) -> None:
        """Commit what is left and print the last line; nothing if something is half done."""
        if self._half_done:
            return
        if self._dirty:
            self.commit()
        self._printer.lines([line])
        self.confirm()

    def _is_due(self, new: list[Line]) -> bool:
        if self._state is None and self.feeder.confidences is None:
            return True  # it costs nothing
        urgent = any(line["type"] == "event" for line in new)
        return urgent or time.monotonic() - self._committed >= _WAIT

    def _write_state(self) -> None:
        if self._state is not None:
            self._state.write(self.feeder.monitor.state_dict(), self.progress)

    def _check_gate(self, lines: list[Line]) -> None:
        for line in lines:
            if line["type"] == "event" and line["kind"] in self._fail_on:
                raise GateFailed(f"{line['kind']} at row {line['row']:,}: {line['message']}")

    def _leave_out(self, broken: Broken) -> None:
        self.feeder.leave_out()
        if not self._skip or broken.final:
            raise InputError(str(broken))
        self.progress.malformed += 1
        complain("warning", f"left out: {broken}")
        self.feeder.tell(broken_line(broken))
