"""Settings: a choice, a flag, a count, a number, a fraction, a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shiftcal._registry import suggest
from shiftcal.errors import InputError, UnknownName


def check_choice(value: object, allowed: Sequence[str], *, name: str) -> Any:
    """``value`` if it is one of ``allowed``."""
    if isinstance(value, str) and value in allowed:
        return value
    hint = suggest(value, allowed)
    near = f" {hint}" if hint.startswith("Did you mean") else ""  # all are named already
    raise UnknownName(
        f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.{near}"
    )


def check_flag(value: object, *, name: str) -> bool:
    """``value`` if it is true or false."""
    if isinstance(value, bool):
        return value
    raise InputError(f"{name} must be true or false; got {value!r}.")


def check_count(value: object, *, name: str, least: int = 1, most: int | None = None) -> int:
    """``value`` as an int of at least ``least``, and at most ``most`` if that is given."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if whole and least <= int(value) and (most is None or int(value) <= most):  # type: ignore[call-overload]
        return int(value)  # type: ignore[call-overload]
    limit = "" if most is None else f" and at most {most:,}"
    raise InputError(f"{name} must be a whole number of at least {least}{limit}; got {value!r}.")


def check_fraction(value: object, *, name: str) -> float:
    """``value`` as a float strictly between 0 and 1."""
    if isinstance(value, (int, float, np.number)) and 0 < float(value) < 1:
        return float(value)
    raise InputError(f"{name} must lie strictly between 0 and 1; got {value!r}.")


def check_not_negative(value: object, *, name: str) -> float:
    """``value`` as a finite float of at least 0."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if number and 0 <= float(value) < np.inf:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    raise InputError(f"{name} must be a number of at least 0; got {value!r}.")


def check_positive(value: object, *, name: str) -> float:
    """``value`` as a finite float above 0."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if number and 0 < float(value) < np.inf:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    raise InputError(f"{name} must be a number above 0; got {value!r}.")


def check_range(value: object, *, name: str) -> tuple[float, float]:
    """``value`` as two positive finite numbers, the smaller first."""
    try:
        low, high = (float(end) for end in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low = high = 0.0
    if 0 < low < high < np.inf:
        return low, high
    raise InputError(
        f"{name} must be two positive numbers, the smaller first, such as (0.01, 100); "
        f"got {value!r}."
    )
