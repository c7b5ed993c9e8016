"""What is to be evaluated: every method on every trained network, each known by content."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version

from shiftcal import methods
from shiftcal.adaptation.mode import TARGET
from shiftcal.studies.adapting.plan import AdaptationPlan
from shiftcal.studies.adapting.trainings import Training
from shiftcal.studies.catalog.base import variant_key
from shiftcal.studies.plan.methods import ORACLE
from shiftcal.studies.plan.plan import MethodPlan
from shiftcal.studies.record import Record
from shiftcal.studies.stages.cells import FORMAT, Cell
from shiftcal.studies.stages.outcome import Outcome
from shiftcal.studies.variant import Ladder, Target, Variant


def cells_of(plan: AdaptationPlan, training: Training, digests: tuple[str, str, str]) -> list[Cell]:
    """The evaluations of a training that is finished: one for each method.

    Args:
        plan: The plan.
        training: The network.
        digests: Of its bank, its source and its target.
    """
    bank, train, target = digests
    made = []
    for variant in variants_of(plan, training):
        looks = variant.method != ORACLE and methods.get(variant.method).uses_features
        told = [
            version("shiftcal"),
            FORMAT,
            variant.method,
            dict(variant.settings),
            bank,
            target,
            train if looks else None,
            plan.bins,
        ]
        text = json.dumps(told, sort_keys=True, default=repr)
        key = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        made.append(Cell(variant, variant.targets[0], training.seed, 0, None, key))
    return made


def variants_of(plan: AdaptationPlan, training: Training | None = None) -> list[Variant]:
    """The methods of a plan; for a training, on its task with its trainer."""
    ladder = Ladder(plan.calibration.corruption, plan.calibration.severities)
    name = "" if training is None else training.pair.name
    panel = "" if training is None else training.trainer.key
    return [_variant(each, ladder, Target(name, name, None), panel) for each in plan.methods]


def _variant(method: MethodPlan, ladder: Ladder, target: Target, panel: str) -> Variant:
    return Variant(
        key=variant_key(method.name, method.settings),
        label=method.label,
        method=method.name,
        ladder=ladder,
        targets=(target,),
        settings=method.settings,
        panel=panel,
        where=method.where,
    )


def record_of(cell: Cell, training: Training, outcome: Outcome) -> Record:
    """The row of ``records.csv``."""
    return cell.record(outcome, f"{training.place}/{TARGET}")
