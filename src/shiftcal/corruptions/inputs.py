"""Corruptions of inputs that are not images: rows, texts, or whatever a model takes."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count, check_positive
from shiftcal.corruptions.corruption import (
    Corruption,
    check_name,
    ladder_of,
    name_of,
    parameters_of,
    stream_keys,
)
from shiftcal.errors import InputError, UnknownName, suggest
from shiftcal.registry import CORRUPTIONS, TABULAR, TEXT, default_name, imported, is_own

_FOR_IMAGES = "It is for images: use SurrogateBank.synthesize or shiftcal.corrupt."


class InputCorruption(ABC):
    """Inputs made harder to classify, at severity 1 and up; severity 0 leaves them as they are.

    Guarantees, checked by the contract tests: as many inputs come out as went in, in the same kind
    of container; the input is unchanged; what happens to an input depends on the input, the
    strength and its random stream, which is made of seed, name, severity and index.

    Attributes:
        name: What it is called in tables and messages, and a part of the random key. Default:
            from the class, ``typing_errors`` for ``TypingErrors``.
        strengths: One for each severity; each class says what they mean.
        may_lose_values: Whether cells can be missing afterwards, which some models cannot take.
    """

    name: str
    strengths: tuple[float, ...]
    may_lose_values: bool = False
    _note: str = ""  # ends the description: options that change the result

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = default_name(cls.__name__, "_")

    @property
    def severities(self) -> int:
        """The highest severity; the lowest that changes anything is 1."""
        return len(self.strengths)

    @property
    def description(self) -> str:
        """The name, with the strengths and options."""
        return f"{self.name} {self.strengths}{self._note}"

    def __repr__(self) -> str:
        return f"<corruption {self.description}>"

    def fitted_to(self, inputs: Any) -> Self:
        """One that is ready for use: itself, or a copy fitted to these inputs if it needs that."""
        return self

    @abstractmethod
    def _apply(self, inputs: Any, severity: int, *, seed: int, first_index: int) -> Any:
        """Corrupted copies of inputs, of which there is at least one; ``severity`` is at least 1.

        ``first_index`` is the index of the first input.
        """

    def _streams(
        self, count: int, severity: int, *, seed: int, first_index: int
    ) -> NDArray[np.uint64]:
        """The key of every input's random stream, ``(count,)``."""
        indices = np.arange(first_index, first_index + count, dtype=np.int64)
        words = stream_keys(seed=seed, corruption=self.name, severity=severity, indices=indices)
        return words[:, 0].astype(np.uint64) | words[:, 1].astype(np.uint64) << np.uint64(32)


def uniforms(bits: NDArray[np.uint64], number: int) -> NDArray[np.float64]:
    """Draw ``number`` of every stream, strictly between 0 and 1, ``(n,)``.

    It is that of SplitMix64 seeded with the key (Steele, Lea and Flood, 2014), so any one can be
    had without those before it.
    """
    # Arrays of unsigned numbers wrap around silently, which is intended.
    z = bits + np.uint64((number + 1) * 0x9E3779B97F4A7C15 & (2**64 - 1))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (((z ^ (z >> np.uint64(31))) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def check_strengths(strengths: object, *, most: float | None = None) -> tuple[float, ...]:
    """Strengths of severity 1, 2, ...: one or more, above 0, rising, and at most ``most``."""
    if isinstance(strengths, (str, bytes)) or not isinstance(strengths, Iterable):
        raise InputError(f"strengths must be a list, one for each severity; got {strengths!r}.")
    checked = tuple(check_positive(each, name="each of the strengths") for each in strengths)
    if not checked or any(later <= earlier for earlier, later in pairwise(checked)):
        raise InputError(f"strengths must be one or more and must rise; got {checked}.")
    if most is not None and checked[-1] > most:
        raise InputError(f"strengths must be at most {most:g}; got {checked[-1]:g}.")
    return checked


def count_inputs(inputs: Any) -> int:
    """The number of inputs: rows of an array, a matrix or a frame, items of a list.

    Raises:
        InputError: If that is unknown, or there are none.
    """
    shape = getattr(inputs, "shape", None)  # sparse matrices have no length
    try:
        count = int(shape[0]) if isinstance(shape, tuple) and shape else len(inputs)
    except TypeError:
        count = -1
    if count < 1 or isinstance(inputs, (str, bytes, Mapping)):
        raise InputError(
            "inputs must be an array, a DataFrame or a list, one at least; got "
            f"{'none' if count == 0 else type(inputs).__name__}. Pass [text] for one text."
        )
    return count


@final
class CustomInputs(InputCorruption):
    """A function of your own as a corruption of rows, texts or whatever the model takes.

    A function is called as ``function(inputs)`` with a copy of all inputs, and returns as many,
    in the same order. If it has a parameter ``severity`` it gets the severity, and if it has a
    parameter ``rng`` a :class:`numpy.random.Generator` seeded by seed, name and severity.

    Args:
        steps: One function for all severities, or a list with one for each severity from 1 on.
        name: What it is called in tables; also part of the random key. Default: the name of the
            function.
        severities: How many severities there are, if ``steps`` is one function. Default: 5 if it
            has a parameter ``severity``, else 1.

    Raises:
        InputError: If a step cannot be called, or the name cannot be that of a file.
    """

    def __init__(
        self,
        steps: Callable[..., Any] | Sequence[Callable[..., Any]],
        *,
        name: str | None = None,
        severities: int | None = None,
    ) -> None:
        self._steps = ladder_of(steps, severities)
        self.name = check_name(name if name is not None else name_of(self._steps[0]))
        self.strengths = tuple(float(s) for s in range(1, len(self._steps) + 1))

    def _apply(self, inputs: Any, severity: int, *, seed: int, first_index: int) -> Any:
        step = self._steps[severity - 1]
        (bits,) = self._streams(1, severity, seed=seed, first_index=first_index)
        options: dict[str, Any] = {"severity": severity, "rng": np.random.default_rng(int(bits))}
        used = {name: options[name] for name in parameters_of(step) & options.keys()}
        try:
            result = step(copy.deepcopy(inputs), **used)
        except Exception as error:
            error.add_note(f"raised by the corruption {self.name!r}, severity {severity}")
            raise
        if result is None:
            raise InputError(f"the corruption {self.name!r} must return the inputs; got None.")
        return result


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
            whatever your function takes.
        corruption: A name (``corruptions.text.names()``), a corruption such as
            ``corruptions.tabular.Noise().fit(rows)``, a function (see :class:`CustomInputs`), or
            a list of functions, one for each severity.
        severity: 0 for the inputs as they are, 1 and up for the strengths of the corruption.
        seed: Fixes the random numbers.
        first_index: Index of the first input, for inputs that come in several batches.

    Returns:
        As many inputs, in the same kind of container.

    Raises:
        InputError: If an argument cannot be used.
        NotFittedError: If the corruption has to be fitted to reference rows first.
    """
    made_by = as_input_corruption(corruption)
    count = count_inputs(inputs)
    level = check_count(severity, name="severity", least=0, most=made_by.severities)
    start = check_count(first_index, name="first_index", least=0, most=2**62)
    key = check_count(seed, name="seed", least=0, most=2**128)
    if level == 0:
        return copy.deepcopy(inputs)
    result = made_by._apply(inputs, level, seed=key, first_index=start)
    if (returned := count_inputs(result)) != count:
        raise InputError(
            f"the corruption {made_by.name!r} must return {count} inputs; got {returned}."
        )
    return result


def as_input_corruption(given: object) -> InputCorruption:
    """The corruption that a name, a class, an object, a function or a list of them stands for.

    A name of the form ``package.module:attribute`` is imported.

    Raises:
        UnknownName: If no corruption of rows or texts has that name.
        InputError: If it is none of these.
    """
    if isinstance(given, InputCorruption):
        return given
    if isinstance(given, str) and is_own(given):
        return as_input_corruption(imported(given))
    if isinstance(given, str):
        for family in (TABULAR, TEXT):
            if given.replace("-", "_").lower() in family.names():
                found: InputCorruption = family.get(given)()
                return found
        known = [*TABULAR.names(), *TEXT.names()]
        hint = _FOR_IMAGES if given in CORRUPTIONS.names() else suggest(given, known)
        raise UnknownName(f"no corruption of rows or texts is called {given!r}. {hint}")
    if inspect.isclass(given) and issubclass(given, InputCorruption):
        return given()
    if isinstance(given, Corruption):
        raise InputError(f"the corruption {given.name!r} cannot be used here. {_FOR_IMAGES}")
    if callable(given) or isinstance(given, (list, tuple)):
        return CustomInputs(given)
    raise InputError(
        f"corruption must be a name such as 'typos', a corruption, or a function; got {given!r}."
    )
