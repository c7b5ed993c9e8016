"""Frozen records of plain values, checked against their own annotations, to and from JSON."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from shiftcal.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Record:
    """Values that are what their annotations say: text, finite numbers, tuples, records.

    Lists become tuples and whole numbers floats where the annotation says so; anything else of
    another type is refused. Two records of the same values are equal.
    """

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in fields(self):
            where = f"{type(self).__name__}.{field.name}"
            value = _fitting(hints[field.name], getattr(self, field.name), where)
            object.__setattr__(self, field.name, value)
        self._check()

    def _check(self) -> None:
        """Raise :class:`InputError` if the values do not go together."""


def to_plain(value: Any) -> Any:
    """Dictionaries, lists, text and numbers that say the same as a record."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def from_plain(cls: type[Any], values: Any, *, where: str) -> Any:
    """The record of ``cls`` that :func:`to_plain` made ``values`` of.

    Raises:
        InputError: If a value is missing, unknown, or not of its type.
    """
    if not isinstance(values, dict):
        raise InputError(f"{where} must be a table of values, not {values!r:.60}.")
    known = {field.name for field in fields(cls)}
    if unknown := sorted(map(str, values.keys() - known)):
        raise InputError(f"{where} has no {unknown[0]!r}. It has: {', '.join(sorted(known))}.")
    try:
        return cls(**values)
    except TypeError as error:  # Python's own words name what is missing
        raise InputError(f"{where} is not complete: {error}.") from error


def same_length(owner: str, **parts: Iterable[Any] | None) -> None:
    """Refuse tuples of one owner that do not have one length; ``None`` is left out."""
    sizes = {name: len(tuple(part)) for name, part in parts.items() if part is not None}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise InputError(f"{owner} must have as many values everywhere: {told}.")


def within_one(owner: str, values: Sequence[float], *, name: str) -> None:
    """Refuse values that do not rise or that leave [0, 1]."""
    rising = all(before < after for before, after in pairwise(values))
    if not values or not rising or not (values[0] >= 0 and values[-1] <= 1):  # also for NaN
        raise InputError(f"{owner} must have rising {name} within [0, 1], not {values!r:.60}.")


def _fitting(hint: Any, value: Any, where: str) -> Any:
    """``value`` as the annotation has it, or an error that says where it stands."""
    if isinstance(hint, type) and is_dataclass(hint):
        return value if isinstance(value, hint) else from_plain(hint, value, where=where)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _one_of(get_args(hint), value, where)
    if origin is tuple and isinstance(value, list | tuple):
        inner = get_args(hint)[0]
        return tuple(_fitting(inner, item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is Literal and value in get_args(hint):
        return value
    if origin is None and _is_plain(hint, value):
        return hint(value) if hint in (int, float) else value
    raise InputError(f"{where} must be {_in_words(hint)}, not {value!r:.60}.")


def _one_of(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in hints:
        return None
    hints = tuple(hint for hint in hints if hint is not type(None))
    for hint in hints[:-1]:
        try:
            return _fitting(hint, value, where)
        except InputError:
            continue
    return _fitting(hints[-1], value, where)


def _is_plain(hint: Any, value: Any) -> bool:
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    return isinstance(value, hint)


def _in_words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(repr(choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return "a tuple"
    words = {float: "a finite number", int: "a whole number", str: "text", bool: "true or false"}
    return words.get(hint, str(hint))
