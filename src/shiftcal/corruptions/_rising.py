"""The strengths of a ladder of the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from shiftcal._checks import check_positive
from shiftcal.errors import InputError


def check_strengths(strengths: object, *, most: float | None = None) -> tuple[float, ...]:
    """Strengths of severity 1, 2, ...: above 0 and rising.

    Args:
        strengths: One number or more.
        most: The largest that makes sense, if there is one.

    Raises:
        InputError: If they are not.
    """
    if isinstance(strengths, (str, bytes)) or not isinstance(strengths, Iterable):
        raise InputError(f"strengths must be a list, one for each severity; got {strengths!r}.")
    made = tuple(check_positive(each, name="each of the strengths") for each in strengths)
    if not made:
        raise InputError("strengths must be one or more, one for each severity; got none.")
    if any(later <= earlier for earlier, later in pairwise(made)):
        raise InputError(f"strengths must rise from severity to severity; got {made}. Sort them.")
    if most is not None and made[-1] > most:
        raise InputError(f"strengths must be at most {most:g}; got {made[-1]:g}.")
    return made
