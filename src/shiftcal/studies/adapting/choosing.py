"""The trainers of a plan with everything settled: options, settings, what is done to images."""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation.choice import Choice, choose
from shiftcal.studies.adapting.plan import AdaptationPlan, TrainerPlan, TrainingPlan


def chosen_by(plan: AdaptationPlan, trainer: TrainerPlan) -> Choice:
    """A trainer as a plan wants it.

    Raises:
        UnknownName: If there is no such trainer, or no such recipe.
        InputError: If an option cannot be used.
    """
    return choose(
        trainer.name,
        recipe=plan.training.recipe,
        changes=changes_of(plan.training, trainer),
        transform=plan.training.transform,
        frozen=plan.network.frozen,
        backbone=plan.network.backbone[0],
    )


def changes_of(training: TrainingPlan, trainer: TrainerPlan) -> dict[str, Any]:
    """What a plan wants otherwise than the recipe; a trainer's own word is the last."""
    return {**training.settings, **trainer.settings}
