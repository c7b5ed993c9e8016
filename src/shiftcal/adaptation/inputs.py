"""What a run takes in: known before anything long is done, and made when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shiftcal.adaptation.devices import Group
from shiftcal.adaptation.mode import Mode
from shiftcal.adaptation.surrogate_choice import SurrogateChoice
from shiftcal.adaptation.task import Task, TaskSplit
from shiftcal.scoring.run import Reporting


@dataclass(frozen=True, eq=False)
class Wanted:
    """What inputs are made for.

    Attributes:
        task: The images.
        split: Which of them are used for what.
        surrogates: Which sets the calibration images need beside the clean one.
        group: The processes that take part.
        workers: Processes that read images, or compute features; 0 is this one.
        reporting: How progress is told.
    """

    task: Task
    split: TaskSplit
    surrogates: SurrogateChoice
    group: Group
    workers: int
    reporting: Reporting


@dataclass(frozen=True, eq=False)
class Inputs:
    """Frozen features, or images with a backbone, which may have to be made yet.

    Attributes:
        identity: Everything about them that decides the result of a training, for JSON; given
            what it was of a run that is finished, for what is settled only as they are made.
        mode: Makes them, unless that is done.
    """

    identity: Callable[[Mapping[str, Any]], dict[str, Any]]
    mode: Callable[[], Mode]

    @classmethod
    def made(cls, mode: Mode) -> Inputs:
        """Those that are there."""
        return cls(lambda _before: mode.identity, lambda: mode)
