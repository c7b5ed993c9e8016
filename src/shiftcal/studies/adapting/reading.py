"""From TOML to a plan of domain adaptation."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from shiftcal.errors import InputError, UnknownName
from shiftcal.studies.adapting.checking import check_adaptation_plan
from shiftcal.studies.adapting.plan import (
    AdaptationPlan,
    DomainPlan,
    NetworkPlan,
    SurrogatePlan,
    TrainerPlan,
    TrainingPlan,
)
from shiftcal.studies.plan.entries import file_name, needed, spelled
from shiftcal.studies.plan.methods import read_methods
from shiftcal.studies.plan.tables import TomlTable

ALL = "all"


def read_adaptation_plan(root: TomlTable) -> AdaptationPlan:
    """A plan from its table.

    Args:
        root: The whole of it.

    Raises:
        InputError: Naming the entry that is missing, unknown or not what it must be.
    """
    where = root.where
    study = root.word("study")
    domains = tuple(_domain(each) for each in root.tables("domains"))
    plan = AdaptationPlan(
        study=study,
        about=root.text("about") or "",
        domains=domains,
        tasks=_tasks(root.anything("tasks"), domains, where),
        trainers=_trainers(root.anything("trainers"), where),
        network=_network(root.table("network")),
        training=_training(root.table("training")),
        calibration=_surrogates(root.table("calibration")),
        methods=read_methods(root.anything("methods"), where),
        seeds=root.counts("seeds", AdaptationPlan.seeds),
        bins=root.count("bins", AdaptationPlan.bins) or AdaptationPlan.bins,
        paper=root.text("paper"),
        where=where,
    )
    root.done()
    check_adaptation_plan(plan)
    return plan


def _domain(table: TomlTable) -> DomainPlan:
    name = file_name(table, "name")
    found = DomainPlan(
        name=name,
        short=table.text("short") or name,
        title=table.text("title") or name,
        images=_alternatives(table),
        labels=table.text("labels"),
        limit=table.count("limit", None),
        fetch=table.text("fetch") or "",
    )
    table.done()
    return found


def _alternatives(table: TomlTable) -> tuple[tuple[str, ...], ...]:
    """Texts, each in turn or a list of them: what is in a list of its own belongs together."""
    given = table.anything("images")
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not listed:
        raise InputError(
            f"{table.where} needs images = ...: a text, or a list of alternatives; got {given!r}."
        )
    found = [each if isinstance(each, list) else [each] for each in listed]
    if not all(each and all(isinstance(text, str) and text for text in each) for each in found):
        raise InputError(
            f"{table.where} images must be texts, or lists of texts whose images are joined; got "
            f"{given!r}."
        )
    return tuple(tuple(each) for each in found)


def _tasks(
    given: object, domains: tuple[DomainPlan, ...], where: str
) -> tuple[tuple[str, str], ...]:
    """The pairs of a list, or all ordered pairs of domains."""
    if given is None or given == ALL:
        return tuple(permutations([domain.name for domain in domains], 2))
    listed: list[Any] = given if isinstance(given, list) else [given]
    if not all(_is_pair(each) for each in listed):
        raise InputError(
            f'{where} tasks must be "{ALL}", or a list of lists of two domains, source and '
            f"target; got {given!r}."
        )
    return tuple((source, target) for source, target in listed)


def _is_pair(given: object) -> bool:
    if not isinstance(given, list) or len(given) != 2:
        return False
    return all(isinstance(name, str) for name in given)


def _trainers(given: object, where: str) -> tuple[TrainerPlan, ...]:
    if not isinstance(given, list) or not given:
        raise InputError(
            f"{where} needs trainers = [...], a list of names or tables; got {given!r}."
        )
    return tuple(_trainer(each, f"{where} trainers {i}") for i, each in enumerate(given, 1))


def _trainer(given: object, where: str) -> TrainerPlan:
    table = TomlTable({"name": given} if isinstance(given, str) else given, where)
    name = table.word("name").lower()
    settings = {key: value for key, value in table.values.items() if key not in ("name", "label")}
    label = table.text("label") or _found(name, where).label
    return TrainerPlan(name, label, settings, where)


def _found(name: str, where: str) -> Any:
    from shiftcal import adaptation

    try:
        return adaptation.get(name)
    except UnknownName as error:
        raise UnknownName(f"{where}: {error}") from error


def _network(table: TomlTable) -> NetworkPlan:
    frozen = table.anything("frozen")
    if frozen is not None and not isinstance(frozen, bool):
        raise InputError(f"{table.where} frozen must be true or false; got {frozen!r}.")
    found = NetworkPlan(needed(table, "backbone"), bool(frozen))
    table.done()
    return found


def _training(table: TomlTable) -> TrainingPlan:
    usual = TrainingPlan()
    found = TrainingPlan(
        recipe=table.text("recipe"),
        transform=table.text("transform"),
        select=table.text("select") or usual.select,
        device=table.text("device") or usual.device,
        precision=table.text("precision"),
        threads=table.count("threads", None),
        settings=table.mapping("settings"),
    )
    table.done()
    return found


def _surrogates(table: TomlTable) -> SurrogatePlan:
    usual = SurrogatePlan()
    found = SurrogatePlan(
        corruption=spelled(table.text("corruption") or usual.corruption),
        severities=tuple(sorted(table.counts("severities", usual.severities, least=1))),
    )
    table.done()
    return found
