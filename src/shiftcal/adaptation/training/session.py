"""One process's part in a training: iterations, one after the other."""

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
from shiftcal.adaptation.training.checkpoint import Checkpoints, State
from shiftcal.adaptation.training.course import Course
from shiftcal.adaptation.training.history import Row
from shiftcal.adaptation.training.interrupts import Interrupts, interrupts
from shiftcal.adaptation.training.ledger import Ledger
from shiftcal.adaptation.training.optimiser import Optimiser
from shiftcal.adaptation.training.progress import Tell, telling
from shiftcal.adaptation.training.randomness import StepSeeds
from shiftcal.adaptation.training.step import Stepper
from shiftcal.adaptation.training.weights import network_tensors, training_tensors
from shiftcal.errors import FileError, FitError, InputError
from shiftcal.scoring.run import Reporting

# Losses are looked at after so many iterations, or so many seconds: to look is to wait for them.
_WINDOW, _PATIENCE = 20, 0.5

Validate = Callable[[Any], float]


class Session:
    """A training under way, from its last checkpoint on.

    Args:
        objective: The network and its loss, on the device.
        settings: Of the training.
        course: How it is run.
        group: The processes that take part.
        device: Where it runs.
        folder: Where the history is.
        kept: The checkpoints.

    Raises:
        FileError: If the checkpoint cannot be read, or is of another training.
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
        self._group, self._kept = group, kept
        self._ledger = Ledger(folder, kept, settings, course, main=group.main)
        optimiser = Optimiser(objective, settings, device)
        self._tensors = training_tensors(objective, optimiser.momentum())
        self._seeds = StepSeeds(course.seed, device, rank=group.rank)
        self._unread: list[tuple[Any, Any, Any]] = []
        self._images = 0
        self._asked, self._settled = Interrupts(), False
        state = self._stored()
        self._ledger.begin(state)
        forward = group.wrapped(objective)
        self._stepper = Stepper(forward, optimiser, device, precision=course.precision)
        if state is not None:
            self.step = state.step
            self._stepper.restore(state.scaler)

    def _stored(self) -> State | None:
        """The newest checkpoint, with all tensors overwritten, in every process."""
        found = self._kept.read(self._tensors) if self._group.main else None
        state: State | None = self._group.told(found)
        self._group.share(self._tensors.values())
        return state

    @property
    def last_row(self) -> Row:
        """The last row of the history."""
        return self._ledger.history.rows[-1]

    def run(self, feed: Feed, validate: Validate | None) -> None:
        """Do whatever is left.

        Raises:
            FileError: If something cannot be written.
            FitError: If the training diverges.
            KeyboardInterrupt: If that was wanted; a checkpoint has been written.
        """
        first, last = self.step, self._settings.iterations
        if self._ledger.stopped_at == last:
            return
        self._objective.train()
        begun = time.monotonic()
        batches = feed.batches(first, last)
        reporting = self._course.reporting if self._group.main else Reporting(shown=False)
        try:
            together = not self._group.alone
            with interrupts(together=together) as asked, telling(first, last, reporting) as tell:
                self._asked = asked
                while self._ledger.stopped_at < last:
                    self._go_on(batches, self._ledger.next_stop, tell)
                    self._stop(validate)
                if asked.wanted:  # of several processes, after all had looked for the last time
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            self._keep_what_there_is()
            raise
        finally:
            getattr(batches, "close", lambda: None)()
        images = (last - first) * self._images * self._group.world
        self.images_per_second = images / (time.monotonic() - begun)

    def finish(self) -> int:
        """Have the selected weights; gives the number of iterations after which they were so."""
        best = self._group.told(self._ledger.best)
        selected: int = self.step if best is None else best.step
        if selected != self.step:
            tensors = network_tensors(self._objective)
            if self._group.main:
                self._kept.fill(tensors, selected)
            self._group.share(tensors.values())
        self._objective.eval()
        return selected

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
            if self._ledger.is_overdue:
                self._keep()

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
        """Count the losses that were not looked at; gives the last of them.

        Raises:
            KeyboardInterrupt: If one of several processes was asked to stop: all do so here.
        """
        if not self._unread:
            return []
        flat = torch.stack([one for three in self._unread for one in three]).float()
        n = len(self._unread)
        self._unread.clear()
        if not self._group.alone:
            flat = self._group.mean(torch.cat([flat, flat.new_tensor([self._asked.wanted])]))
            self._settled = bool(flat[-1] > 0)
        window: list[list[float]] = flat[: 3 * n].view(n, 3).tolist()
        self._ledger.count(window, self.step - n)
        if self._settled:
            raise KeyboardInterrupt
        return window[-1]

    def _stop(self, validate: Validate | None) -> None:
        """Whatever is due after this iteration: the accuracy, a row, a checkpoint."""
        accuracy = None
        if validate is not None and self._group.main and self._ledger.accuracy_due(self.step):
            accuracy = self._accuracy(validate)
        self._asked.busy = True
        self._ledger.stop(self.step, accuracy)
        self._asked.end_of_step()
        if self._ledger.checkpoint_due(self.step):
            self._keep()

    def _accuracy(self, validate: Validate) -> float:
        self._objective.eval()
        with torch.no_grad():
            accuracy = float(validate(self._objective.classifier))
        self._objective.train()
        return accuracy

    def _keep(self) -> None:
        self._ledger.keep(self.step, self._tensors, self._stepper.scaling())

    def _keep_what_there_is(self) -> None:
        # In the middle of an iteration some numbers are the next one's; and several processes must
        # have stopped after the same one.
        if self._asked.busy or not (self._group.alone or self._settled):
            return
        with suppress(FitError, FileError):
            self._read_losses()
            self._keep()
        self._group.wait()  # a launcher that sees one process end may end the one that writes
