"""What is kept of a training: the history of its losses, and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shiftcal.adaptation.settings import Settings
from shiftcal.adaptation.training.checkpoint import Best, Checkpoints, State
from shiftcal.adaptation.training.course import Course
from shiftcal.adaptation.training.divergence import check_losses, check_weights
from shiftcal.adaptation.training.history import History, Row, Tally
from shiftcal.adaptation.training.weights import not_finite

# A checkpoint is left out if the last one took more than a share of the time that has passed since:
# steps may last less than 1 ms, and to write what survives a power cut takes tens of them.
_SHARE = 0.05
# Rows of the history in all, about, and how often the accuracy is measured.
_ROWS, _ACCURACIES = 100, 20


def validate_every(settings: Settings) -> int:
    """Iterations between two measurements of the accuracy."""
    return -(-settings.iterations // _ACCURACIES)


class Ledger:
    """Kept by every process, and written by the first.

    Args:
        folder: Where everything is written.
        kept: The checkpoints.
        settings: Of the training.
        course: How it is run.
        main: Whether this process writes.
    """

    def __init__(
        self, folder: Path, kept: Checkpoints, settings: Settings, course: Course, *, main: bool
    ) -> None:
        self._folder, self._kept, self._main = folder, kept, main
        self._settings, self._course = settings, course
        self._row_every = -(-settings.iterations // _ROWS)
        self._validate_every = validate_every(settings)
        self._tally = Tally()
        self._not_before = 0.0
        self._not_after = time.monotonic() + course.checkpoint_seconds
        # Iterations, and where the last row or checkpoint was due, in the newest checkpoint.
        self._newest = (0, 0)
        self.best: Best | None = None
        self.stopped_at = 0
        self.history: History

    def begin(self, state: State | None) -> None:
        """Go on from a checkpoint, or begin."""
        rows: list[Row] = []
        if state is not None:
            self.stopped_at, self.best, rows = state.stopped_at, state.best, state.rows
            self._newest = (state.step, state.stopped_at)
            self._tally = Tally(state.since, state.sums)
        self.history = History(self._folder if self._main else None, rows)

    @property
    def next_stop(self) -> int:
        """The next iteration after which a row, the accuracy or a checkpoint is due."""
        done = self.stopped_at
        every = (self._row_every, self._validate_every, self._course.checkpoint_every)
        return min(self._settings.iterations, *(done - done % n + n for n in every))

    def ends(self, step: int) -> bool:
        """Whether this was the last iteration."""
        return step == self._settings.iterations

    def accuracy_due(self, step: int) -> bool:
        """Whether the accuracy is to be measured after so many iterations."""
        return self.ends(step) or step % self._validate_every == 0

    def count(self, window: Sequence[Sequence[float]], first: int) -> None:
        """Count the losses of iterations in a row, of which ``first`` is the first.

        Raises:
            FitError: If one is not finite.
        """
        check_losses(window, first, self._settings, self._said_of_newest())
        for losses in window:
            self._tally.add(losses)

    def stop(self, step: int, accuracy: float | None) -> None:
        """Note what is due after so many iterations, but for the checkpoint."""
        if self.ends(step) or accuracy is not None or step % self._row_every == 0:
            rate = self._settings.lr_at(step - 1)
            self.history.append(Row(step, rate, *self._tally.means(), accuracy))
            self._tally = Tally()
        if accuracy is not None and self._is_best(accuracy):
            self.best = Best(step, accuracy)
        self.stopped_at = step

    def _is_best(self, accuracy: float) -> bool:
        if self._course.select == "last":
            return False
        return self.best is None or accuracy >= self.best.accuracy

    def checkpoint_due(self, step: int) -> bool:
        """Whether a checkpoint is to be written where the training stops for a moment."""
        if self.ends(step) or (self.best is not None and self.best.step == step):
            return True
        due = step % self._course.checkpoint_every == 0
        return due and time.monotonic() >= self._not_before

    @property
    def is_overdue(self) -> bool:
        """Whether so much time has passed that a checkpoint is to be written wherever this is."""
        return self._main and time.monotonic() >= max(self._not_after, self._not_before)

    def keep(self, step: int, tensors: Mapping[str, Any], scaler: dict[str, Any] | None) -> None:
        """Have a checkpoint of this moment, if there is none.

        Raises:
            FitError: If a tensor is not finite.
            FileError: If it cannot be written.
        """
        holds = (step, self.stopped_at)
        if not self._main or holds == self._newest:
            return
        begun = time.monotonic()
        check_weights(not_finite(tensors), step, self._settings, self._said_of_newest())
        state = State(
            step=step,
            stopped_at=self.stopped_at,
            since=self._tally.steps,
            sums=self._tally.sums,
            rows=self.history.rows,
            best=self.best,
            scaler=scaler,
        )
        self._kept.write(state, tensors)
        self._newest = holds
        now = time.monotonic()
        self._not_before = now + (now - begun) / _SHARE
        self._not_after = now + self._course.checkpoint_seconds

    def _said_of_newest(self) -> str:
        if not self._main:
            return f"The last checkpoint is kept in {self._folder}."
        if not self._newest[0]:
            return "There was no checkpoint yet."
        return f"The checkpoint of step {self._newest[0]:,} is kept in {self._folder}."
