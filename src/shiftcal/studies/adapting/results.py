"""What the findings of a study of domain adaptation are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shiftcal.studies.adapting.plan import AdaptationPlan, Pair, TrainerPlan
from shiftcal.studies.catalog.base import variant_key
from shiftcal.studies.record import Record

SOURCE_ONLY = "source-only"


@dataclass(frozen=True)
class Facts:
    """One trained network in numbers; fractions, not percent.

    Attributes:
        task: Name of the task.
        trainer: Key of the trainer.
        seed: Of split and training.
        n_calibration: Images of the source that were not trained on.
        source_accuracy: On them.
        source_confidence: Mean confidence on them.
        n_target: Images of the target that training never saw.
        target_accuracy: On them.
        target_confidence: Mean confidence on them.
    """

    task: str
    trainer: str
    seed: int
    n_calibration: int
    source_accuracy: float
    source_confidence: float
    n_target: int
    target_accuracy: float
    target_confidence: float

    @property
    def overconfidence(self) -> float:
        """How much more the network is too sure on the target than on the source.

        A source on which it is not sure enough counts as one on which it is just right.
        """
        there = self.target_confidence - self.target_accuracy
        return there - max(0.0, self.source_confidence - self.source_accuracy)


@dataclass(frozen=True)
class Failure:
    """A training that came to nothing.

    Attributes:
        task: Name of the task.
        trainer: Key of the trainer.
        seed: Of split and training.
        reason: What it said.
    """

    task: str
    trainer: str
    seed: int
    reason: str


@dataclass(frozen=True, eq=False)
class AdaptationResults:
    """Records, and what is known of every training.

    Attributes:
        plan: The plan as it was run.
        records: Every evaluation; panel is the trainer, target the task, split the seed.
        facts: Of every training that was finished.
        failures: Trainings that were not.
    """

    plan: AdaptationPlan
    records: tuple[Record, ...]
    facts: tuple[Facts, ...] = ()
    failures: tuple[Failure, ...] = ()

    @cached_property
    def variants(self) -> dict[str, str]:
        """Labels of the methods by key, in the order of the plan."""
        return {variant_key(m.name, m.settings): m.label for m in self.plan.methods}

    @cached_property
    def trainers(self) -> tuple[TrainerPlan, ...]:
        """Those that there are records of."""
        there = {record.panel for record in self.records}
        return tuple(trainer for trainer in self.plan.trainers if trainer.key in there)

    @property
    def adapting(self) -> tuple[TrainerPlan, ...]:
        """Those of them that look at the target."""
        return tuple(trainer for trainer in self.trainers if trainer.name != SOURCE_ONLY)

    @property
    def baseline(self) -> TrainerPlan | None:
        """The one that does not."""
        return next((each for each in self.trainers if each.name == SOURCE_ONLY), None)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The tasks that there are records of."""
        there = {record.target for record in self.records}
        return tuple(pair for pair in self.plan.pairs if pair.name in there)

    def at(self, trainer: str, variant: str, task: str) -> list[Record]:
        """The records of one trainer, method and task: one for each seed."""
        return self._index.get((trainer, variant, task), [])

    def over_tasks(self, trainers: Sequence[str], variant: str) -> list[Record]:
        """The records of a method over all tasks and some trainers.

        A seed of which one of them is missing is left out, so that means over seeds are of like
        with like.
        """
        found = [self.at(trainer, variant, p.name) for trainer in trainers for p in self.pairs]
        whole = set.intersection(*({r.split for r in each} for each in found)) if found else set()
        return [record for each in found for record in each if record.split in whole]

    @cached_property
    def _index(self) -> dict[tuple[str, str, str], list[Record]]:
        found: dict[tuple[str, str, str], list[Record]] = {}
        for record in self.records:
            found.setdefault((record.panel, record.variant, record.target), []).append(record)
        return found
