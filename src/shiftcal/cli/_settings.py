"""From options to an unfitted method."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shiftcal._registry import suggest
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.methods import Method


def settings_of(method: type[Method]) -> dict[str, Any]:
    """Name and default of every setting that can be chosen.

    The kind of input is none of them: the files say it.
    """
    parameters = inspect.signature(method).parameters
    return {name: p.default for name, p in parameters.items() if name != "input"}


def choose_settings(
    method: type[Method], options: Mapping[str, Any], assignments: Sequence[str]
) -> dict[str, Any]:
    """The settings that options ask for.

    Args:
        method: The method they are for.
        options: Values of the options named as settings are; ``None`` if not given.
        assignments: Texts ``NAME=VALUE`` of ``--set``.

    Raises:
        InputError: If the method has no such setting, or one is given twice.
    """
    chosen = {name: value for name, value in options.items() if value is not None}
    known = settings_of(method)
    for name in chosen:
        if name not in known:
            raise InputError(_has_no(method, f"--{name}", name))
    for assignment in assignments:
        name, value = _parse(assignment)
        if name not in known:
            raise InputError(
                f"{_has_no(method, f'{name!r} for --set', name)} {suggest(name, list(known))}"
            )
        if name in chosen:
            raise InputError(f"the setting {name!r} is given twice. Leave one of them out.")
        if isinstance(known[name], bool) and not isinstance(value, bool):
            raise InputError(f"the setting {name!r} must be true or false; got {value!r}.")
        chosen[name] = value
    if "map" in chosen:
        from shiftcal import maps

        maps.get(chosen["map"])  # a mistyped name is told before files are read
    return chosen


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
