"""The networks that a plan asks for, and where each of them is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write, make_folder
from shiftcal.studies.adapting.choosing import chosen_by
from shiftcal.studies.adapting.plan import AdaptationPlan, Pair, TrainerPlan
from shiftcal.studies.adapting.results import Failure
from shiftcal.studies.stages.digests import digest

FOLDER = "trainings"
# To be raised by who changes what a trainer or its training computes from the same numbers.
FORMAT = 1
_FINISHED = "adapt.json"


@dataclass(frozen=True)
class Training:
    """One network: a task, a trainer, a seed.

    Attributes:
        pair: The task.
        trainer: The trainer.
        seed: Of split and training.
        place: Its folder, from that of the run. A plan that wants it otherwise has another, so
            that nothing is mixed.
    """

    pair: Pair
    trainer: TrainerPlan
    seed: int
    place: str

    @property
    def title(self) -> str:
        """In messages."""
        return f"{self.trainer.label} on {self.pair.title}, seed {self.seed}"

    def finished(self, run: Path) -> bool:
        """Whether everything is there that is stored of it."""
        return (run / self.place / _FINISHED).is_file()

    def failure(
        self, run: Path, made_of: Callable[[], dict[str, Any]] | None = None
    ) -> Failure | None:
        """Why it came to nothing, if it did with this version of shiftcal.

        Args:
            run: Folder of the run.
            made_of: Gives what it would be made of; one that was made of something else is
                forgotten. By default nobody knows.
        """
        with suppress(OSError, ValueError, TypeError, KeyError):
            told = json.loads(self._note(run).read_text("utf-8"))
            now = None if made_of is None else made_of()
            same = now is None or told.get("made_of", now) == now
            if same and told["shiftcal"] == version("shiftcal"):
                return Failure(self.pair.name, self.trainer.key, self.seed, str(told["reason"]))
        return None

    def fail(self, run: Path, reason: str, made_of: Mapping[str, Any]) -> None:
        """Write down that it came to nothing: the same seed on one machine would again.

        Args:
            run: Folder of the run.
            reason: In words.
            made_of: Images and labels, by which others are noticed.

        Raises:
            FileError: If it cannot be written.
        """
        make_folder(self._note(run).parent)
        with atomic_write(self._note(run), durable=False) as temporary:
            told = {"shiftcal": version("shiftcal"), "reason": reason, "made_of": made_of}
            temporary.write_text(json.dumps(told, indent=1) + "\n", "utf-8")

    def _note(self, run: Path) -> Path:
        return (run / self.place).with_suffix(".diverged.json")


def trainings_of(plan: AdaptationPlan) -> list[Training]:
    """All of them, seed by seed, task by task: what was done first has all methods to compare."""
    return list(_trainings(plan))


def _trainings(plan: AdaptationPlan) -> Iterator[Training]:
    for seed in plan.seeds:
        for pair in plan.pairs:
            for trainer in plan.trainers:
                named = f"{trainer.key}-{_decided(plan, pair, trainer)}"
                place = f"{FOLDER}/{pair.name}/{named}/seed-{seed}"
                yield Training(pair, trainer, seed, place)


def _decided(plan: AdaptationPlan, pair: Pair, trainer: TrainerPlan) -> str:
    """A digest of what decides a training and its outputs: no recipe by name, but its numbers."""
    chosen, frozen = chosen_by(plan, trainer), plan.network.frozen
    return digest(
        FORMAT,
        plan.images_of(pair.source),
        plan.images_of(pair.target),
        asdict(plan.network),
        chosen.name,
        sorted(chosen.trainer.to_dict().items()),
        sorted(chosen.settings.to_dict().items()),
        None if frozen else chosen.transform,
        (plan.training.select, plan.training.precision),
        asdict(plan.calibration),
    )
