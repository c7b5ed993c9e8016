"""What concerns several entries of a plan of domain adaptation, or what other packages know."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shiftcal import corruptions, methods
from shiftcal._checks import check_choice
from shiftcal._registry import suggest
from shiftcal.adaptation.feeds.augment.pipelines import TRANSFORMS
from shiftcal.adaptation.training.course import PRECISIONS
from shiftcal.errors import InputError, ShiftcalError, UnknownName
from shiftcal.studies.adapting.choosing import chosen_by
from shiftcal.studies.adapting.paper import PUBLISHED
from shiftcal.studies.adapting.plan import AdaptationPlan, TrainerPlan
from shiftcal.studies.plan.methods import ORACLE

# As torch writes them; whether there is one is asked where the plan is run.
_DEVICE = re.compile(r"[a-z]+(:[0-9]+)?")


def check_adaptation_plan(plan: AdaptationPlan) -> None:
    """Refuse a plan whose parts do not go together.

    Raises:
        InputError: Naming what is wrong.
    """
    where = plan.where
    if not plan.seeds:
        raise InputError(f"{where} seeds must name one at least: each has trainings of its own.")
    if not plan.methods:
        raise InputError(f"{where} compares nothing: it needs methods = [...].")
    _check_domains(plan)
    _check_tasks(plan)
    _check_surrogates(plan)
    _check_training(plan)
    if plan.paper is not None and plan.paper not in PUBLISHED:
        raise InputError(
            f"{where} paper must be a data set of the paper's; got {plan.paper!r}. "
            f"{suggest(plan.paper, list(PUBLISHED))}"
        )
    for trainer in plan.trainers:
        _check_trainer(trainer, plan)
    _check_apart((t.key for t in plan.trainers), f"{where}: two trainers are the same:")
    _check_apart((t.label for t in plan.trainers), f"{where}: two trainers have the label")
    _check_apart((m.label for m in plan.methods), f"{where}: two methods have the label")
    told = (f"{m.name} {dict(m.settings)}" for m in plan.methods)
    _check_apart(told, f"{where}: two methods are the same, name and settings:")


def _check_domains(plan: AdaptationPlan) -> None:
    where = plan.where
    if len(plan.domains) < 2:
        raise InputError(
            f"{where} needs two domains at least, [[domains]] with name = ... and images = ...; "
            f"got {len(plan.domains)}."
        )
    _check_apart((d.name for d in plan.domains), f"{where}: two domains have the name")
    _check_apart((d.short for d in plan.domains), f"{where}: two domains have the short name")


def _check_tasks(plan: AdaptationPlan) -> None:
    known = [domain.name for domain in plan.domains]
    if not plan.tasks:
        raise InputError(f'{plan.where} tasks must name one at least, or be "all".')
    for pair in plan.tasks:
        for name in pair:
            if name not in known:
                raise InputError(
                    f"{plan.where} tasks name the domain {name!r}, which the plan has not. "
                    f"{suggest(name, known)}"
                )
        if pair[0] == pair[1]:
            raise InputError(
                f"{plan.where} tasks must go from one domain to another; got {pair[0]!r} twice."
            )
    _check_apart((pair.name for pair in plan.pairs), f"{plan.where}: two tasks are the same:")
    _check_apart((pair.title for pair in plan.pairs), f"{plan.where}: two tasks have the title")


def _check_training(plan: AdaptationPlan) -> None:
    """Refuse names that would be looked at only when the first network is trained."""
    training, where = plan.training, f"{plan.where} [training]"
    check_choice(training.select, ("last", "source-validation"), name=f"{where} select")
    if training.precision is not None:
        check_choice(training.precision, PRECISIONS, name=f"{where} precision")
    if not _DEVICE.fullmatch(training.device):
        raise InputError(
            f"{where} device must be 'auto', or a device as torch names it, such as 'cpu' or "
            f"'cuda:1'; got {training.device!r}."
        )
    if training.transform is None:
        return
    if plan.network.frozen:
        raise InputError(
            f"{where} transform must be left out with a frozen backbone, whose features are made "
            f"of the images as they are; got {training.transform!r}. Say resize and crop in the "
            "text of the backbone."
        )
    check_choice(training.transform, TRANSFORMS, name=f"{where} transform")


def _check_surrogates(plan: AdaptationPlan) -> None:
    made_by, where = plan.calibration, f"{plan.where} [calibration]"
    try:
        most = corruptions.get(made_by.corruption)().severities
    except UnknownName as error:
        raise UnknownName(f"{where} corruption: {error}") from error
    if max(made_by.severities, default=0) > most:
        raise InputError(
            f"{where} severities must be those of {made_by.corruption}, 1 to {most}; got "
            f"{list(made_by.severities)}."
        )
    learning = [m.label for m in plan.methods if m.name != ORACLE and _uses_bank(m.name)]
    if learning and not made_by.severities:
        raise InputError(
            f"{where} severities must name one at least: {', '.join(learning)} learn from "
            "surrogate sets, and of the clean set alone they are TS. Add some, or leave them out."
        )


def _uses_bank(method: str) -> bool:
    return bool(methods.get(method).uses_bank)


def _check_trainer(trainer: TrainerPlan, plan: AdaptationPlan) -> None:
    try:
        chosen_by(plan, trainer)
    except ShiftcalError as error:
        raise type(error)(f"{trainer.where}: {error}") from error


def _check_apart(names: Iterable[str], told: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{told} {name!r}. Give each its own, or leave one out.")
        seen.add(name)
