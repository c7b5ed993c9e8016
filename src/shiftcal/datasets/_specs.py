"""A data set in one line: ``NAME:PATH?option=value&option=value``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from shiftcal._registry import suggest
from shiftcal.errors import InputError

# Two letters at least, since one is a drive on Windows.
_SPEC = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):(.+)", re.DOTALL)
_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False}


@dataclass(frozen=True)
class Spec:
    """What such a line says.

    Attributes:
        name: Of the data set or the kind of container.
        path: Where it is.
        options: What else it says.
    """

    name: str
    path: str
    options: dict[str, Any] = field(default_factory=dict)


def parse_spec(text: str) -> Spec | None:
    """The parts of a line, or ``None`` if it is a path.

    Whole numbers become numbers, ``true``, ``false`` and ``none`` what they are in Python, and an
    option that comes several times a tuple. ``%20`` stands for a space in a value.

    Raises:
        InputError: If an option has no value.
    """
    parts = _SPEC.fullmatch(text)
    if parts is None:
        return None
    path, _, query = parts[2].partition("?")
    options: dict[str, Any] = {}
    for one in filter(None, query.split("&")):
        key, equals, value = one.partition("=")
        if not (key and equals):
            raise InputError(
                f"{text!r}: options are written NAME:PATH?option=value&option=value; got {one!r}."
            )
        key = key.strip().replace("-", "_")
        if key in options:
            before = options[key] if isinstance(options[key], tuple) else (options[key],)
            options[key] = (*before, _value(value))
        else:
            options[key] = _value(value)
    return Spec(parts[1], path, options)


def check_options(function: Callable[..., Any], options: dict[str, Any], *, name: str) -> None:
    """Refuse options that the function does not have, and ask for those it must have.

    Raises:
        InputError: Naming the option, and the nearest there is.
    """
    known = {
        key: parameter
        for key, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    for key in options:
        if key not in known:
            hint = suggest(key, sorted(known)) if known else "It has none."
            raise InputError(f"{name} has no option {key!r}. {hint}")
    for key, parameter in known.items():
        if parameter.default is parameter.empty and key not in options:
            raise InputError(f"{name} needs the option {key}=...; it was not given.")


def _value(text: str) -> Any:
    value = unquote(text)
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else value
