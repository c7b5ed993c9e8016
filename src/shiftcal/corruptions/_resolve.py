"""Whatever stands for a corruption, as a corruption."""

from __future__ import annotations

import functools
import inspect

from shiftcal import corruptions
from shiftcal.corruptions._custom import Custom
from shiftcal.corruptions._input_corruption import InputCorruption
from shiftcal.corruptions.base import Corruption
from shiftcal.errors import InputError


def as_corruption(given: object) -> Corruption:
    """The corruption that a name, a class, an object, a function or a list of them stands for.

    Raises:
        UnknownName: If no corruption has that name.
        InputError: If it is nothing of these.
    """
    if isinstance(given, Corruption):
        return given
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, InputCorruption) or (
        inspect.isclass(given) and issubclass(given, InputCorruption)
    ):
        raise InputError(
            f"corruption must be one of images; {given!r} is for rows or texts. "
            "SurrogateBank.from_inputs makes banks of those, corruptions.corrupt_inputs inputs."
        )
    if inspect.isclass(given) and issubclass(given, Corruption):
        return given()
    if callable(given) or isinstance(given, (list, tuple)):
        return Custom(given)
    raise InputError(
        "corruption must be a name such as 'pixelate', a corruption, or a function of your own; "
        f"got {given!r}."
    )


@functools.cache
def _named(name: str) -> Corruption:
    made: Corruption = corruptions.get(name)()
    return made
