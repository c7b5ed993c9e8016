"""A stream at work: rows into blocks, blocks into the window, a look at the end of every block."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Logits, Probs
from shiftcal.estimates import AccuracyEstimator
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods._ladder import FEW_ROWS
from shiftcal.monitoring._blocks import Blocks, Weights
from shiftcal.monitoring._choices import Chooser, Seen
from shiftcal.monitoring._columns import UNIT, features
from shiftcal.monitoring._detector import Detector
from shiftcal.monitoring._messages import event
from shiftcal.monitoring._phases import Phase, next_phase
from shiftcal.monitoring._running import Running
from shiftcal.monitoring._scales import scales_of
from shiftcal.monitoring._snapshot import Snapshot
from shiftcal.monitoring._update import Event, Update
from shiftcal.monitoring._windows.base import Plan
from shiftcal.numerics._jit import to_read


class Parts(NamedTuple):
    """What was fitted.

    Attributes:
        method: The method.
        estimator: Of the accuracy, or ``None``.
        chooser: The method's choices.
        detector: What a shift is seen by.
        plan: The window.
        patience: Looks that a return takes.
        level: Coverage of the estimate's interval.
    """

    method: Method
    estimator: AccuracyEstimator | None
    chooser: Chooser
    detector: Detector
    plan: Plan
    patience: int
    level: float


class Live:
    """A running state and what moves it on. Not thread-safe: a monitor has the lock.

    Args:
        parts: What was fitted.
        running: The state, which is changed in place.
    """

    def __init__(self, parts: Parts, running: Running) -> None:
        self._parts = parts
        self.running = running
        plan, detector = parts.plan, parts.detector
        scales = scales_of(plan)
        spread = np.sqrt(1 / scales.rows + 1 / detector.n_clean)[:, None]
        told = (
            scales.weights / scales.totals[:, None] / spread,
            scales.needed,
            detector.reference / spread,
            detector.directions,
            detector.limits.squares,
        )
        self._scales = tuple(to_read(array) for array in told)
        # The fewest blocks that a choice is made by.
        self._least = min(-(-FEW_ROWS // plan.block), plan.blocks)
        self._means = np.empty(running.partial.shape[0] - 1)
        self._features = features(running.ring)
        self._weigh()
        self._applied = self._map_in_use()
        self._snapshot = self._look_back()

    def feed(self, logits: Logits, at: float | None, *, probabilities: bool) -> Update:
        """Take checked rows, the sums of which become part of the window."""
        run, block = self.running, self._parts.plan.block
        z = to_read(logits)
        n, k = z.shape
        confidence = np.empty(n)
        predicted = np.empty(n, np.intp)
        probs = np.empty((n, k) if probabilities else (0, 0))
        events: list[Event] = []
        start = 0
        looked = False
        while start < n:
            stop = min(n, start + block - run.pending)
            piece = slice(start, stop)
            self._rows(z[piece], confidence[piece], predicted[piece], probs[piece])
            run.pending += stop - start
            run.rows += stop - start
            start = stop
            if run.pending == block:
                looked = True
                events += self._end_block(at)
        if looked:
            self._snapshot = self._look_back()
        return Update(
            confidence,
            predicted,
            probs if probabilities else None,
            rows=run.rows,
            state=run.state,
            statistic=run.statistic,
            outside=run.outside,
            temperature=run.temperature,
            events=tuple(events),
            _snapshot=self._snapshot,
        )

    def _rows(
        self,
        z: Logits,
        confidence: NDArray[np.float64],
        predicted: NDArray[np.intp],
        probs: Probs,
    ) -> None:
        """Rows of one block, with the calibration that is in use."""
        from shiftcal.monitoring._stream_kernels import pass_rows

        if self._applied is None:
            t = self.running.temperature
            pass_rows(z, t, self.running.partial, confidence, predicted, probs)
            return
        none = np.empty((0, 0))
        pass_rows(z, 1.0, self.running.partial, confidence, predicted, none)
        calibrated = self._applied.apply_checked(z)
        predicted[:] = calibrated.argmax(axis=1)
        confidence[:] = calibrated.max(axis=1)
        if len(probs):
            probs[:] = calibrated

    def _end_block(self, at: float | None) -> list[Event]:
        from shiftcal.monitoring._look_kernels import end_block

        run = self.running
        if run.filled < len(run.ring):
            run.filled += 1
            self._weigh()
        end_block(run.ring, self._features, run.partial, run.head, self._window, self._means)
        run.pending = 0
        run.head = (run.head + 1) % len(run.ring)
        if run.filled < self._least:
            return []
        self._choose()
        return self._look(at)

    def _weigh(self) -> None:
        """Weights of the blocks that are there, and how many rows are as noisy."""
        weights = self._parts.plan.weights[: self.running.filled]
        total, squares = float(weights.sum()), float((weights**2).sum())
        block = self._parts.plan.block
        self._window = weights * (UNIT / (block * total)) if total else weights
        self._n = round(block * total**2 / squares) if total else 0
        self._weights = Weights(self._parts.plan, self.running.filled)

    def _choose(self) -> None:
        run = self.running
        # The groups are gone when the next block is: no copy of the ring is needed.
        whole = partial(self._weights.grouped, run.ring, run.head)
        seen = Seen(self._means, self._n, run.filled, whole)
        choice = self._parts.chooser.choose(seen)
        changed = choice.which != run.which
        run.temperature, run.which, run.outside = choice
        if changed:
            self._applied = self._map_in_use()

    def _look(self, at: float | None) -> list[Event]:
        from shiftcal.monitoring._look_kernels import largest_ratio

        run, limits = self.running, self._parts.detector.limits
        newest = (run.head - 1) % len(run.ring)
        run.statistic = largest_ratio(self._features, newest, run.filled, self._scales)
        before = Phase(run.state, run.calm, run.crossed)
        after, kind = next_phase(
            before,
            run.statistic,
            run.outside,
            full=run.filled == len(run.ring),
            lower=limits.lower,
            patience=self._parts.patience,
        )
        run.state, run.calm, run.crossed = after
        return [] if kind is None else [event(kind, run, limits.lower, at)]

    def _look_back(self) -> Snapshot | None:
        if self.running.filled < self._least:
            return None
        parts = self._parts
        blocks = Blocks(self.running.ring, self.running.head, self._weights)
        return Snapshot(blocks, parts.method, parts.estimator, parts.level)

    def _map_in_use(self) -> Map | None:
        """What is applied; ``None`` where that is a division by the temperature."""
        if self.running.temperature is not None:
            return None
        return self._parts.chooser.map_of(self.running.which)
