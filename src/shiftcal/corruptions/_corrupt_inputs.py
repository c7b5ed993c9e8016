"""The function people call for what is not an image: inputs in, corrupted inputs out."""

from __future__ import annotations

import inspect
from typing import Any

from shiftcal import corruptions
from shiftcal._checks import check_count
from shiftcal._registry import suggest
from shiftcal.corruptions import tabular, text
from shiftcal.corruptions._count_inputs import count_inputs
from shiftcal.corruptions._custom_inputs import CustomInputs, copied_inputs
from shiftcal.corruptions._input_corruption import InputCorruption
from shiftcal.corruptions.base import Corruption
from shiftcal.errors import InputError, UnknownName

_OF_IMAGES = "is for images: SurrogateBank.synthesize makes banks of those, shiftcal.corrupt images"


def corrupt_inputs(
    inputs: Any,
    corruption: object,
    *,
    severity: int,
    seed: int = 0,
    first_index: int = 0,
) -> Any:
    """Corrupted copies of rows or texts: ``corrupt_inputs(texts, "typos", severity=3)``.

    Every input has a random stream of its own, made of seed, corruption, severity and its index:
    ``corrupt_inputs(texts[5:], ..., first_index=5)`` gives what all texts give from the sixth on.

    Args:
        inputs: What the model takes: an array or a DataFrame of rows, a list of texts, or
            whatever a function of your own takes.
        corruption: A name (``corruptions.text.names()``), a corruption such as
            ``corruptions.tabular.Noise().fit(rows)``, or a function of your own
            (:class:`CustomInputs` says what it is given), or a list of functions, one for each
            severity.
        severity: 0 for the inputs as they are, 1 and up for the strengths of the corruption.
        seed: Fixes the random numbers.
        first_index: Index of the first input, for inputs that come in several batches.

    Returns:
        As many inputs, in the same kind of container.

    Raises:
        InputError: If something given cannot be used; the message says what to do.
        NotFittedError: If the corruption has to be fitted to reference rows first.
    """
    made_by = as_input_corruption(corruption)
    count = count_inputs(inputs)
    level = check_count(severity, name="severity", least=0, most=made_by.severities)
    start = check_count(first_index, name="first_index", least=0, most=2**62)
    key = check_count(seed, name="seed", least=0, most=2**128)
    if level == 0:
        return copied_inputs(inputs)
    made = made_by._apply(inputs, level, seed=key, first_index=start)
    try:
        found = count_inputs(made)
    except InputError as error:
        raise InputError(
            f"the corruption {made_by.name!r} must return {count} inputs, as it was given; it "
            f"returned something else: {error}"
        ) from error
    if found != count:
        raise InputError(
            f"the corruption {made_by.name!r} must return {count} inputs, as it was given; it "
            f"returned {found}. Labels would no longer belong to them."
        )
    return made


def as_input_corruption(given: object) -> InputCorruption:
    """The corruption that a name, a class, an object, a function or a list of them stands for.

    Raises:
        UnknownName: If no corruption of rows or texts has that name.
        InputError: If it is nothing of these.
    """
    if isinstance(given, InputCorruption):
        return given
    if isinstance(given, str):
        return _named(given)
    if inspect.isclass(given) and issubclass(given, InputCorruption):
        return given()
    if isinstance(given, Corruption):
        raise InputError(f"the corruption {given.name!r} {_OF_IMAGES}.")
    if callable(given) or isinstance(given, (list, tuple)):
        return CustomInputs(given)
    raise InputError(
        "corruption must be a name such as 'typos', a corruption, or a function of your own; "
        f"got {given!r}."
    )


def _named(name: str) -> InputCorruption:
    for family in (tabular, text):
        if name.replace("-", "_").lower() in family.names():
            made: InputCorruption = family.get(name)()
            return made
    if name in corruptions.names():
        raise UnknownName(f"the corruption {name!r} {_OF_IMAGES}.")
    known = [*tabular.names(), *text.names()]
    raise UnknownName(f"no corruption of rows or texts is called {name!r}. {suggest(name, known)}")
