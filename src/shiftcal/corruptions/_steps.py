"""Functions of the user's own as the steps of a ladder, one for each severity."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from shiftcal._checks import check_count
from shiftcal.errors import InputError


def ladder_of(steps: object, severities: int | None) -> tuple[Callable[..., Any], ...]:
    """The function of every severity from 1 on.

    Args:
        steps: One function for all severities, or a list with one for each.
        severities: How many there are, if ``steps`` is one function: by default 5 if it has a
            parameter ``severity``, else 1.

    Raises:
        InputError: If a step cannot be called, or their number is in doubt.
    """
    ladder: list[Any] = list(steps) if isinstance(steps, (list, tuple)) else [steps]
    if not ladder or not all(callable(step) for step in ladder):
        raise InputError(
            "a corruption of your own must be a function, or a list of one function per "
            f"severity; got {steps!r}."
        )
    if isinstance(steps, (list, tuple)):
        if severities not in (None, len(ladder)):
            raise InputError(
                f"severities must be left out where a list of steps is given, or be its "
                f"length, {len(ladder)}; got {severities!r}."
            )
        return tuple(ladder)
    takes = "severity" in parameters_of(ladder[0])
    count = check_count(severities or (5 if takes else 1), name="severities")
    if count > 1 and not takes:
        raise InputError(
            f"severities is {count}, but {name_of(ladder[0])} has no parameter "
            "'severity'. Give it one, or pass a list of functions."
        )
    return tuple(ladder * count)


def parameters_of(step: Callable[..., Any]) -> set[str]:
    """Names of the parameters of a function, as far as it tells them."""
    try:
        return set(inspect.signature(step).parameters)
    except (TypeError, ValueError):  # some functions written in C tell nothing
        return set()


def name_of(step: Callable[..., Any]) -> str:
    """What a function is called."""
    name = getattr(step, "__name__", None) or type(step).__name__
    return "custom" if name == "<lambda>" else name
