"""From a batch to confidences and lines, all of its rows or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftcal.cli._inputs import check_order
from shiftcal.cli._monitor_batches import Batch, Broken
from shiftcal.cli._monitor_confidences import ConfidencesFile, row_lines
from shiftcal.cli._monitor_lines import Line, event_line, window_line
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shiftcal.cli._monitor_metrics import Metrics
    from shiftcal.cli._monitor_state import Progress
    from shiftcal.monitoring import Monitor, Update

# Confidences are added up as whole numbers of 2**-32: their sum is the same however rows are cut.
_UNIT = 1 << 32
# Most rows fed at once, so that a large file needs no more memory than its rows.
_PIECE = 1 << 16


@dataclass
class Counts:
    """What this run has done.

    Attributes:
        rows: Rows calibrated.
        batches: Batches or files they came in.
        malformed: Batches or files that cannot be used.
        events: Events by kind.
    """

    rows: int = 0
    batches: int = 0
    malformed: int = 0
    events: dict[str, int] = field(default_factory=dict)


class Feeder:
    """Feeds a monitor, and keeps what is to be given out until it is taken.

    Args:
        monitor: Fitted, with its running state.
        progress: How far the runs before came.
        every: Rows between two window lines.
        confidences: Where confidences go, if to a file.
        print_confidences: Whether they go to stdout.
        metrics: Told of every batch when it is whole, if they are served.

    Attributes:
        every: Rows between two window lines.
        counts: What this run has done.
        lines: Lines that wait to be printed.
        rows: Confidences that wait to be printed.
    """

    def __init__(
        self,
        monitor: Monitor,
        progress: Progress,
        *,
        every: int,
        confidences: ConfidencesFile | None = None,
        print_confidences: bool = False,
        metrics: Metrics | None = None,
    ) -> None:
        self.monitor, self.progress, self.confidences = monitor, progress, confidences
        self.counts = Counts()
        self.lines: list[Line] = []
        self.rows: list[str] = []
        self.every, self._print, self._metrics = every, print_confidences, metrics

    def feed(self, batch: Batch) -> Broken | None:
        """Feed all rows, or none of them and say why."""
        try:
            values = self._values(batch)
        except InputError as error:
            return Broken(batch.where, str(error), file=batch.file)
        pieces, before = list(self._pieces(len(values))), len(self.lines)
        back = self._way_back() if len(pieces) > 1 else None
        try:
            for piece in pieces:
                self._feed(values[piece], batch, piece)
        except InputError as error:
            if back is not None:  # a piece may be refused for what is no harm in company
                back()
            return Broken(batch.where, str(error), file=batch.file)
        self.counts.batches += 1
        self._tell_metrics(len(values), self.lines[before:])
        return None

    def leave_out(self) -> None:
        """Count a batch that cannot be used."""
        self.counts.malformed += 1
        if self._metrics is not None:
            self._metrics.done(malformed=True)

    def tell(self, line: Line) -> None:
        """Have a line printed with the next ones."""
        self.lines.append(line)

    def _tell_metrics(self, rows: int, lines: list[Line]) -> None:
        if self._metrics is None:
            return
        self._metrics.fed(rows, self.monitor.state, self.monitor.running_.temperature)
        for line in lines:
            self._metrics.told(line)
        self._metrics.done(malformed=False)

    def _way_back(self) -> Callable[[], None]:
        """What undoes all that is fed from now on."""
        fed = self.monitor.state_dict()
        sums, counts = (
            dict(self.progress.sums),
            replace(self.counts, events=self.counts.events | {}),
        )
        n_rows, n_lines = len(self.rows), len(self.lines)
        mark = 0 if self.confidences is None else self.confidences.mark()

        def back() -> None:
            self.monitor.load_state_dict(fed)
            self.progress.sums, self.counts = sums, counts
            del self.rows[n_rows:], self.lines[n_lines:]
            if self.confidences is not None:
                self.confidences.rewind(mark)

        return back

    def _values(self, batch: Batch) -> NDArray[Any]:
        """The rows as the monitor takes them, every number looked at."""
        import numpy as np

        from shiftcal._checks import GUARD_FROM, check_scores

        names = self.monitor.class_names_
        if batch.classes is not None and names is not None:
            check_order(Path(batch.where), batch.classes, names)
        own, k = self.monitor.method_.input, self.monitor.n_classes_
        kind = batch.kind or own
        logits = check_scores(batch.values, input=kind, k=k, guard_from=GUARD_FROM)
        if own == "logits":
            return logits
        from shiftcal.numerics.softmax import softmax

        return np.asarray(batch.values) if kind == own else softmax(logits)

    def _pieces(self, n: int) -> Iterator[slice]:
        """Parts of ``n`` rows that end where a window line is due."""
        start, done = 0, self.monitor.rows
        while start < n:
            due = self.every - (done + start) % self.every
            stop = min(n, start + due, start + _PIECE)
            yield slice(start, stop)
            start = stop

    def _feed(self, values: NDArray[Any], batch: Batch, piece: slice) -> None:
        update = self.monitor.feed(values, at=batch.at)
        n = len(values)
        self.counts.rows += n
        self._put_confidences(update, batch, piece)
        for event in update.events:
            self.counts.events[event.kind] = self.counts.events.get(event.kind, 0) + 1
            self.tell(event_line(event))
        sums = self.progress.sums
        added = (update.confidence * _UNIT).round().astype("int64").sum()
        sums["confidence"] = sums.get("confidence", 0) + int(added)
        sums["rows"] = sums.get("rows", 0) + n
        if update.rows % self.every == 0:
            mean = sums["confidence"] / (_UNIT * sums["rows"])
            self.tell(window_line(update, at=batch.at, mean_confidence=mean))
            sums.clear()

    def _put_confidences(self, update: Update, batch: Batch, piece: slice) -> None:
        if self.confidences is None and not self._print:
            return
        ids = None if batch.ids is None else batch.ids[piece]
        first = update.rows - len(update.confidence)
        lines = row_lines(first, update.confidence, update.predicted, ids)
        if self.confidences is None:
            self.rows += lines
        else:
            self.confidences.write(lines)
