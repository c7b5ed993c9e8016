"""One process's part in a training: iterations, and what is kept of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.devices import Group
from shiftcal.adaptation.feeds.base import Batch, Feed
from shiftcal.adaptation.settings import Settings
from shiftcal.adaptation.training.checkpoint import Best, Checkpoints, State
from shiftcal.adaptation.training.course import Course
from shiftcal.adaptation.training.divergence import check_losses, check_weights
from shiftcal.adaptation.training.history import History, Row, Tally
from shiftcal.adaptation.training.interrupts import Interrupts, interrupts
from shiftcal.adaptation.training.optimiser import Optimiser
from shiftcal.adaptation.training.progress import Tell, telling
from shiftcal.adaptation.training.randomness import StepSeeds
from shiftcal.adaptation.training.step import Stepper
from shiftcal.adaptation.training.weights import network_tensors, not_finite, training_tensors
from shiftcal.errors import FileError, FitError, InputError
from shiftcal.scoring.run import Reporting

# Losses are looked at after so many iterations, or so many seconds: to look is to wait for them.
_WINDOW, _PATIENCE = 20, 0.5
# Rows of the history in all, about.
_ROWS = 100

Validate = Callable[[Any], float]


class Session:
    """A training under way.

    Args:
        objective: The network and its loss, on the device.
        settings: Of the training.
        course: How it is run.
        group: The processes that take part.
        device: Where it runs.
        folder: Where the history is.
        kept: The checkpoints.
    """

    def __init__(
        self,
        objective: Any,
        settings: Settings,
        course: Course,
        *,
        group: Group,
        device: Any,
        folder: Path,
        kept: Checkpoints,
    ) -> None:
        self.step = 0
        self.images_per_second = 0.0
        self._objective, self._settings, self._course = objective, settings, course
        self._group, self._device = group, device
        self._folder, self._kept = folder, kept
        self._optimiser = Optimiser(objective, settings, device)
        self._tensors = training_tensors(objective, self._optimiser.momentum())
        self._seeds = StepSeeds(course.seed, device, rank=group.rank)
        self._unread: list[tuple[Any, Any, Any]] = []
        self._best: Best | None = None
        self._images = 0
        self._asked = Interrupts()
        self._resume()

    def _resume(self) -> None:
        group = self._group
        found = self._kept.read(self._tensors) if group.main else None
        state: State | None = group.told(found)
        group.share(self._tensors.values())
        forward = group.wrapped(self._objective)
        precision = self._course.precision
        self._stepper = Stepper(forward, self._optimiser, self._device, precision=precision)
        self._tally = Tally()
        # Where the last row or checkpoint was due, and what the newest checkpoint holds of both.
        self._stopped_at, self._kept_at = 0, (0, 0)
        rows: list[Row] = []
        if state is not None:
            self.step, self._stopped_at = self._kept_at = state.step, state.stopped_at
            self._tally, self._best, rows = Tally(state.since, state.sums), state.best, state.rows
            if self._stepper.scaler is not None and state.scaler is not None:
                self._stepper.scaler.load_state_dict(state.scaler)
        self._history = History(self._folder if group.main else None, rows)

    @property
    def last_row(self) -> Row:
        """The last row of the history."""
        return self._history.rows[-1]

    def run(self, feed: Feed, validate: Validate | None) -> None:
        """Do whatever is left.

        Raises:
            FileError: If something cannot be written.
            FitError: If the training diverges.
            KeyboardInterrupt: If that was wanted; a checkpoint has been written.
        """
        first, last = self.step, self._settings.iterations
        if self._stopped_at == last:
            return
        self._objective.train()
        begun = time.monotonic()
        batches = feed.batches(first, last)
        reporting = self._course.reporting if self._group.main else Reporting(shown=False)
        try:
            with interrupts() as self._asked, telling(first, last, reporting) as tell:
                while self._stopped_at < last:
                    self._go_on(batches, self._next_stop(), tell)
                    self._stop(validate)
        except KeyboardInterrupt:
            self._keep_what_there_is()
            raise
        finally:
            getattr(batches, "close", lambda: None)()
        images = (last - first) * self._images * self._group.world
        self.images_per_second = images / (time.monotonic() - begun)

    def finish(self) -> int:
        """Have the selected weights; gives the number of iterations after which they were so."""
        best = self._group.told(self._best)
        selected: int = self.step if best is None else best.step
        if selected != self.step:
            tensors = network_tensors(self._objective)
            if self._group.main:
                self._kept.fill(tensors, selected)
            self._group.share(tensors.values())
        self._objective.eval()
        return selected

    def _next_stop(self) -> int:
        """The next iteration after which a row or a checkpoint is due."""
        done = self._stopped_at
        every = (self._row_every, self._course.checkpoint_every)
        return min(self._settings.iterations, *(done - done % n + n for n in every))

    @property
    def _row_every(self) -> int:
        return -(-self._settings.iterations // _ROWS)

    def _go_on(self, batches: Iterator[Batch], last: int, tell: Tell) -> None:
        while self.step < last:
            before = self.step
            self._some_steps(batches, min(last, before + _WINDOW))
            if self.step == before:
                raise InputError(
                    f"the feed must give a batch for each of {self._settings.iterations:,} steps; "
                    f"it ended after {before:,}."
                )
            tell(self.step - before, self._read_losses(), self._images)

    def _some_steps(self, batches: Iterator[Batch], last: int) -> None:
        set_seed, take_step, unread = self._seeds.set, self._stepper, self._unread
        asked, alone, clock = self._asked, self._group.alone, time.monotonic
        until = clock() + _PATIENCE
        step, batch = self.step, None
        for batch in islice(batches, last - step):
            asked.busy = True
            set_seed(step)
            unread.append(take_step(batch, step))
            self.step = step = step + 1
            asked.end_of_step()
            if alone and clock() > until:  # processes must look at the same moment
                break
        if batch is not None:
            self._images = len(batch.source) + (0 if batch.target is None else len(batch.target))

    def _read_losses(self) -> list[float]:
        """Count the losses that were not looked at; gives the last of them."""
        if not self._unread:
            return []
        flat = torch.stack([one for three in self._unread for one in three]).float()
        n = len(self._unread)
        self._unread.clear()
        window = self._group.mean(flat).view(n, 3).tolist()
        check_losses(window, self.step - n, self._settings, self._said_of_kept())
        for losses in window:
            self._tally.add(losses)
        last: list[float] = window[-1]
        return last

    def _stop(self, validate: Validate | None) -> None:
        """Whatever is due after this iteration: a row, a checkpoint."""
        ends = self.step == self._settings.iterations
        due = ends or self.step % self._course.checkpoint_every == 0
        accuracy = None
        if due and validate is not None and self._group.main:
            accuracy = self._accuracy(validate)
        self._asked.busy = True
        if ends or accuracy is not None or self.step % self._row_every == 0:
            rate = self._settings.lr_at(self.step - 1)
            self._history.append(Row(self.step, rate, *self._tally.means(), accuracy))
            self._tally = Tally()
        if accuracy is not None and self._is_best(accuracy):
            self._best = Best(self.step, accuracy)
        self._stopped_at = self.step
        self._asked.end_of_step()
        if due:
            self._keep()

    def _accuracy(self, validate: Validate) -> float:
        self._objective.eval()
        with torch.no_grad():
            accuracy = float(validate(self._objective.classifier))
        self._objective.train()
        return accuracy

    def _is_best(self, accuracy: float) -> bool:
        if self._course.select == "last":
            return False
        return self._best is None or accuracy >= self._best.accuracy

    def _keep(self) -> None:
        """Have a checkpoint of this iteration, if there is none."""
        holds = (self.step, self._stopped_at)
        if holds != self._kept_at:
            if self._group.main:
                self._write()
            self._kept_at = holds

    def _write(self) -> None:
        check_weights(not_finite(self._tensors), self.step, self._settings, self._said_of_kept())
        scaler = self._stepper.scaler
        state = State(
            step=self.step,
            stopped_at=self._stopped_at,
            since=self._tally.steps,
            sums=self._tally.sums,
            rows=self._history.rows,
            best=self._best,
            scaler=None if scaler is None else scaler.state_dict(),
        )
        self._kept.write(state, self._tensors)

    def _keep_what_there_is(self) -> None:
        # In the middle of an iteration some numbers are the next one's; and of several processes,
        # the losses of all would have to be waited for.
        if self._group.alone and not self._asked.busy:
            with suppress(FitError, FileError):
                self._read_losses()
                self._keep()

    def _said_of_kept(self) -> str:
        if not self._kept_at[0]:
            return "There was no checkpoint yet."
        return f"The checkpoint of step {self._kept_at[0]:,} is kept in {self._folder}."
