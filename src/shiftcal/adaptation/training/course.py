"""How a training is run, and what is told about it at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from shiftcal._checks import check_choice, check_count, check_positive
from shiftcal.adaptation.training.history import Row
from shiftcal.scoring.run import Reporting

PRECISIONS = ("bfloat16", "float16")


@dataclass(frozen=True)
class Course:
    """How a training is run.

    Attributes:
        seed: Decides everything random.
        device: As torch names it, or ``"auto"``.
        precision: Of the forward pass: ``"bfloat16"`` or ``"float16"``; ``None`` is float32.
        checkpoint_every: Iterations between two checkpoints; some are left out where they would
            take more than a twentieth of the time.
        checkpoint_seconds: The same in time: whichever comes first.
        select: Which weights are the result: the last, or those with the best accuracy on
            validation images of the source, of some twenty moments; the latest among equals.
        reporting: How progress is told.
    """

    seed: int = 0
    device: str = "auto"
    precision: str | None = None
    checkpoint_every: int = 500
    checkpoint_seconds: float = 300.0
    select: Literal["last", "source-validation"] = "last"
    reporting: Reporting = field(default_factory=Reporting)

    def __post_init__(self) -> None:
        check_count(self.seed, name="seed", least=0, most=2**64 - 1)
        check_count(self.checkpoint_every, name="checkpoint_every")
        check_positive(self.checkpoint_seconds, name="checkpoint_seconds")
        check_choice(self.select, ("last", "source-validation"), name="select")
        if self.precision is not None:
            check_choice(self.precision, PRECISIONS, name="precision")


@dataclass(frozen=True)
class Trained:
    """A training that is finished.

    Attributes:
        steps: Iterations in all.
        losses: The last row of its history.
        resumed_at: Iterations that were done before; 0 if it began here.
        images_per_second: Of both domains, by all processes; 0 if nothing was left to do.
        selected_step: Iterations after which the weights were as they are now.
    """

    steps: int
    losses: Row
    resumed_at: int
    images_per_second: float
    selected_step: int
