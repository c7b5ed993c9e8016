"""From options to the settings of an unfitted method, and of the map inside it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shiftcal._registry import suggest
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.maps import Map
    from shiftcal.methods import Method

_OF_MAP = "map."


def settings_of(cls: type[Method] | type[Map]) -> dict[str, Any]:
    """Name and default of every setting that can be chosen.

    The kind of input is none of them: the files say it.
    """
    parameters = inspect.signature(cls).parameters
    return {name: p.default for name, p in parameters.items() if name != "input"}


def shown_settings(method: Method) -> dict[str, Any]:
    """Every setting, those of a map under the names that ``--set`` gives them."""
    from shiftcal.maps import Map

    shown = method.get_params(deep=False)
    inner = shown.get("map")
    if isinstance(inner, Map):
        shown["map"] = inner.name()
        shown |= {_OF_MAP + name: getattr(inner, name) for name in settings_of(type(inner))}
    return shown


def choose_settings(
    method: type[Method], options: Mapping[str, Any], assignments: Sequence[str]
) -> dict[str, Any]:
    """The settings that options ask for.

    Args:
        method: The method they are for.
        options: Values of the options named as settings are; ``None`` if not given.
        assignments: Texts ``NAME=VALUE`` of ``--set``; a name after ``map.`` is one of the map's.

    Raises:
        InputError: If there is no such setting, or one is given twice.
    """
    chosen = {name: value for name, value in options.items() if value is not None}
    known = settings_of(method)
    for name in chosen:
        if name not in known:
            raise InputError(_has_no(method, f"--{name}", name))
    of_map: dict[str, Any] = {}
    for assignment in assignments:
        name, value = _parse(assignment)
        if name.startswith(_OF_MAP):
            _put(of_map, name, value)
            continue
        if name not in known:
            raise InputError(_unknown(method, name, chosen.get("map", known.get("map"))))
        _put(chosen, name, value, default=known[name])
    if of_map and "map" not in known:
        raise InputError(_has_no(method, f"{next(iter(of_map))!r} for --set", "map"))
    if "map" in chosen or of_map:
        chosen["map"] = _choose_map(chosen.get("map", known["map"]), of_map)
    return chosen


def parse_assignments(assignments: Sequence[str]) -> dict[str, Any]:
    """Names and values of ``--set NAME=VALUE``; values are JSON, or else text.

    Raises:
        InputError: If one has another form, or a name is given twice.
    """
    chosen: dict[str, Any] = {}
    for assignment in assignments:
        _put(chosen, *_parse(assignment))
    return chosen


def _choose_map(name: str, assigned: Mapping[str, Any]) -> str | Map:
    """The map's name, or an unfitted one if it has settings of its own."""
    from shiftcal import maps

    cls = maps.get(name)  # a mistyped name is told before files are read
    if not assigned:
        return name
    known = settings_of(cls)
    settings: dict[str, Any] = {}
    for full_name, value in assigned.items():
        setting = full_name.removeprefix(_OF_MAP)
        if setting not in known:
            hint = suggest(setting, list(known)) if known else "It has no settings."
            raise InputError(f"the map {cls.name()} has no setting {setting!r}. {hint}")
        _put(settings, setting, value, default=known[setting])
    made: Map = cls(**settings)
    return made


def _put(chosen: dict[str, Any], name: str, value: Any, *, default: Any = None) -> None:
    if name in chosen:
        raise InputError(f"the setting {name!r} is given twice. Leave one of them out.")
    if isinstance(default, bool) and not isinstance(value, bool):
        raise InputError(f"the setting {name!r} must be true or false; got {value!r}.")
    chosen[name] = value


def _unknown(method: type[Method], name: str, map_name: Any) -> str:
    from shiftcal import maps

    problem = _has_no(method, f"{name!r} for --set", name)
    if isinstance(map_name, str) and name in settings_of(maps.get(map_name)):
        return f"{problem} The map {map_name} has: say --set {_OF_MAP}{name}=..."
    return f"{problem} {suggest(name, list(settings_of(method)))}"


def _has_no(method: type[Method], what: str, setting: str) -> str:
    from shiftcal import methods

    others = [name for name in methods.names() if setting in settings_of(methods.get(name))]
    where = f" It belongs to: {', '.join(others)}." if others else ""
    return f"{method.name()} has no setting {what}.{where}"


def _parse(assignment: str) -> tuple[str, Any]:
    name, equals, text = assignment.partition("=")
    if not equals or not name:
        raise InputError(f"--set must be of the form NAME=VALUE; got {assignment!r}.")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text
