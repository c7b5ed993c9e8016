"""Numbers over severities, checked, and the line that is drawn of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shiftcal._checks import to_array
from shiftcal.errors import InputError
from shiftcal.numerics.intervals import mean_interval

Numbers = dict[float, tuple[float, ...]]


class Line(NamedTuple):
    """What is drawn of one method.

    Attributes:
        x: Severities, rising.
        y: What the line goes through.
        low: Lower ends of the bars; ``y`` itself where there is none.
        high: Upper ends.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def numbers_by_severity(ece: object, severities: object) -> dict[str, Numbers]:
    """Label to severity to numbers.

    Raises:
        InputError: If they cannot be read so.
    """
    if not isinstance(ece, Mapping) or not ece:
        given = "nothing" if isinstance(ece, Mapping) else type(ece).__name__
        raise InputError(
            'ece must have numbers by label, such as {"SAC": [0.02, 0.03, 0.05]} or what '
            f"plot.errors_by_severity gives; got {given}."
        )
    return {str(label): _numbers(str(label), given, severities) for label, given in ece.items()}


def line(numbers: Numbers, *, spread: str, level: float) -> Line:
    """The line through the numbers of one method, and its bars."""
    ends = [_ends(values, spread=spread, level=level) for values in numbers.values()]
    y, low, high = zip(*ends, strict=True)
    return Line(tuple(numbers), y, low, high)


def _ends(values: Sequence[float], *, spread: str, level: float) -> tuple[float, float, float]:
    if spread == "quartiles":
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
        return middle, low, high
    found = mean_interval(values, level=level)
    if spread == "range":
        return found.mean, min(values), max(values)
    if found.low is None or found.high is None:
        return found.mean, found.mean, found.mean
    return found.mean, max(found.low, 0.0), min(found.high, 1.0)


def _numbers(label: str, given: object, severities: object) -> Numbers:
    pairs = list(given.items()) if isinstance(given, Mapping) else _paired(label, given, severities)
    found: Numbers = {}
    for severity, values in pairs:
        number = isinstance(severity, (int, float, np.number)) and np.isfinite(float(severity))
        if not number or isinstance(severity, bool):
            raise InputError(f"severities of {label!r} must be numbers; got {severity!r}.")
        found[float(severity)] = _fractions(label, severity, values)
    if not found:
        raise InputError(f"ece of {label!r} must have at least one number; got none.")
    return dict(sorted(found.items()))


def _paired(label: str, given: object, severities: object) -> list[tuple[Any, Any]]:
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise InputError(
            f"ece of {label!r} must be numbers, one or several for each severity; "
            f"got {given!r:.60}."
        )
    values = list(given)  # type: ignore[call-overload]
    if severities is None:
        return list(enumerate(values, start=1))
    levels = to_array(severities, name="severities").ravel().tolist()
    if len(levels) != len(values) or len(set(levels)) < len(levels):
        raise InputError(
            f"severities must be as many as the numbers of {label!r}, each once: "
            f"{len(values)} numbers; got {levels}."
        )
    return list(zip(levels, values, strict=True))


def _fractions(label: str, severity: Any, values: object) -> tuple[float, ...]:
    try:
        array = np.atleast_1d(np.asarray(values))
    except ValueError:  # lists of different lengths
        array = np.empty((0, 0))
    fits = array.dtype.kind in "iuf" and array.ndim == 1 and array.size
    if not fits or not ((array >= 0) & (array <= 1)).all():  # not of NaN either
        raise InputError(
            f"ece of {label!r} at severity {severity} must be one number or several within [0, 1]; "
            f"got {values!r:.80}. They are fractions: 0.05, not 5."
        )
    return tuple(float(value) for value in array)
