"""The methods that a plan compares."""

from __future__ import annotations

from typing import Any

from shiftcal._registry import suggest
from shiftcal.errors import InputError, UnknownName
from shiftcal.studies.plan.plan import MethodPlan
from shiftcal.studies.plan.tables import TomlTable

ORACLE = "oracle"


def read_methods(given: object, where: str) -> tuple[MethodPlan, ...]:
    """The methods of a list of names or tables.

    Args:
        given: What the plan says; ``None`` is no method.
        where: What the plan is called in messages.

    Raises:
        InputError: Naming the one that is unknown, has a setting that there is not, or needs more
            than a study has.
    """
    if given is None:
        return ()
    if not isinstance(given, list):
        raise InputError(f"{where} methods must be a list of names or tables; got {given!r}.")
    return tuple(_method(each, f"{where} methods {i}") for i, each in enumerate(given, 1))


def _method(given: object, where: str) -> MethodPlan:
    table = TomlTable({"name": given} if isinstance(given, str) else given, where)
    name = table.word("name").lower()
    label = table.text("label")
    settings = {key: value for key, value in table.values.items() if key not in ("name", "label")}
    if name != ORACLE:
        method = _found(name, where)
        if method.uses_mixed:
            raise InputError(
                f"{where}: {method.__name__} needs scores of mixed target images, which a study "
                "does not make. Leave it out."
            )
        made = method(**_known(method, settings, where))
        label = label or type(made).__name__
    elif settings:
        raise InputError(f"{where}: the oracle has no settings; got {', '.join(settings)}.")
    return MethodPlan(name, label or "Oracle", settings, where)


def _found(name: str, where: str) -> Any:
    from shiftcal import methods

    try:
        return methods.get(name)
    except UnknownName as error:
        raise UnknownName(f"{where}: {error}") from error


def _known(method: Any, settings: dict[str, Any], where: str) -> dict[str, Any]:
    known = sorted(method().get_params())
    for name in settings:
        if name not in known:
            raise InputError(
                f"{where}: {method.__name__} has no setting {name!r}. {suggest(name, known)}"
            )
    return settings
