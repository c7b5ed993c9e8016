"""In what a study differs from the paper's, whose numbers stand beside its own."""

from __future__ import annotations

import re

from shiftcal.studies.adapting.plan import AdaptationPlan, SurrogatePlan, TrainingPlan
from shiftcal.studies.adapting.showing import paper_of

_BINS = 15
_NOT_IN_NAMES = re.compile(r"[-_]")


def unlike_paper(plan: AdaptationPlan) -> str:
    """A sentence that names every difference; empty if there is none, or no paper beside.

    Seeds are none: the paper's one training is among those that a study may have.
    """
    found = [*_network(plan), *_training(plan), *_judging(plan)]
    return f"Ours differ from the paper's in: {', '.join(found)}." if found else ""


def _network(plan: AdaptationPlan) -> list[str]:
    paper, text = paper_of(plan), plan.network.backbone[0]
    if paper is None:
        return []
    same = re.search(rf"\b{paper.backbone}\b", _NOT_IN_NAMES.sub("", text).lower())
    found = [] if same else [f"the backbone {text}"]
    return [*found, "which is frozen"] if plan.network.frozen else found


def _training(plan: AdaptationPlan) -> list[str]:
    if plan.paper is None:
        return []
    training, usual = plan.training, TrainingPlan(recipe=plan.paper)
    names = ("recipe", "transform", "select", "precision")
    told = {name: (getattr(training, name), getattr(usual, name)) for name in names}
    found = [
        f"{name} {mine or 'default'}" for name, (mine, theirs) in told.items() if mine != theirs
    ]
    return [*found, *(f"{name} = {value}" for name, value in training.settings.items())]


def _judging(plan: AdaptationPlan) -> list[str]:
    if plan.paper is None:
        return []
    found = [] if plan.bins == _BINS else [f"{plan.bins} bins"]
    if plan.calibration != SurrogatePlan():
        made_by = plan.calibration
        levels = ", ".join(map(str, made_by.severities))
        found.append(f"surrogate sets of {made_by.corruption} at severities {levels or 'none'}")
    limits = [domain for domain in plan.domains if domain.limit is not None]
    return [*found, *(f"at most {domain.limit:,} images of {domain.title}" for domain in limits)]
