"""An engine by its name and whatever was said about it."""

from __future__ import annotations

import inspect

from shiftcal._registry import Registry
from shiftcal.errors import InputError
from shiftcal.scoring.engines.base import Engine

REGISTRY = Registry("shiftcal.scoring.engines", "engine", Engine)


def engine_of(name: str | Engine, **settings: object) -> Engine:
    """The engine called ``name``; one that is made already is given back.

    Args:
        name: Such as ``"local"`` or ``"ray"``.
        **settings: Of that engine, such as ``workers`` or ``address``; those that are ``None``
            were not said.

    Raises:
        UnknownName: If no engine is called that.
        InputError: If something was said that the engine does not take.
        MissingExtra: If it needs a package that is not installed.
    """
    said = {key: value for key, value in settings.items() if value is not None}
    if isinstance(name, Engine):
        if said:
            raise InputError(
                f"{', '.join(said)} must be left out if engine is one that is made already; say "
                f"it to {type(name).__name__}."
            )
        return name
    made = REGISTRY.get(name)
    for key in said:
        if key not in _settings_of(made):
            raise InputError(
                f"{key} must be left out for the {name} engine, which takes "
                f"{', '.join(_settings_of(made))}.{_who_takes(key)}"
            )
    engine: Engine = made(**said)
    return engine


def _settings_of(engine: type[Engine]) -> list[str]:
    return list(inspect.signature(engine).parameters)


def _who_takes(key: str) -> str:
    others = [name for name in REGISTRY.names() if key in _settings_of(REGISTRY.get(name))]
    return f" For {key}, say engine {others[0]}." if others else ""
