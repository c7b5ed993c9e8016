"""A user's own function as a corruption of inputs of any kind."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from shiftcal._checks import check_flag
from shiftcal.corruptions._count_inputs import count_inputs
from shiftcal.corruptions._given_name import check_name
from shiftcal.corruptions._input_corruption import InputCorruption
from shiftcal.corruptions._steps import ladder_of, name_of, parameters_of
from shiftcal.errors import InputError


@final
class CustomInputs(InputCorruption):
    """A function of your own as a corruption of rows, texts or whatever the model takes.

    A function is called as ``function(inputs)`` with a copy of all inputs, and returns as many,
    in the same order. If it has a parameter ``severity`` it gets the severity, and if it has a
    parameter ``rng`` a :class:`numpy.random.Generator` seeded by seed, name and severity.

    Args:
        steps: One function for all severities, or a list with one for each severity from 1 on.
        name: What it is called in tables; also part of the random key. By default the name of the
            function.
        severities: How many severities there are, if ``steps`` is one function: by default 5 if
            it has a parameter ``severity``, else 1.
        each: Call the function with one input at a time, each with a generator of its own, which
            is seeded by the index too. An input then comes out the same whatever is beside it.

    Raises:
        InputError: If a step cannot be called, or the name cannot be that of a file.
    """

    def __init__(
        self,
        steps: Callable[..., Any] | Sequence[Callable[..., Any]],
        *,
        name: str | None = None,
        severities: int | None = None,
        each: bool = False,
    ) -> None:
        self._steps = ladder_of(steps, severities)
        self._name = check_name(name if name is not None else name_of(self._steps[0]))
        self.each = check_flag(each, name="each")
        self.strengths = tuple(float(s) for s in range(1, len(self._steps) + 1))

    @property
    def name(self) -> str:
        """The name it was given."""
        return self._name

    @property
    def description(self) -> str:
        """The name, and that it is not one of this package's."""
        return f"{self._name} (custom, {self.severities} severities)"

    def _apply(self, inputs: Any, severity: int, *, seed: int, first_index: int) -> Any:
        count = count_inputs(inputs)
        keys = self._streams(count, severity, seed=seed, first_index=first_index)
        if not self.each:
            return self._called(copied_inputs(inputs), severity, int(keys[0]))
        if not isinstance(inputs, (list, tuple, np.ndarray)):
            raise InputError(
                f"with each=True inputs must be a list or an array; got {type(inputs).__name__}. "
                "Leave each out, and the function gets all inputs at once."
            )
        made = [
            self._called(copied_inputs(one), severity, int(key))
            for one, key in zip(inputs, keys, strict=True)
        ]
        return self._stacked(made, inputs) if isinstance(inputs, np.ndarray) else made

    def _called(self, inputs: Any, severity: int, bits: int) -> Any:
        step = self._steps[severity - 1]
        given: dict[str, Any] = {"severity": severity, "rng": np.random.default_rng(bits)}
        try:
            made = step(inputs, **{name: given[name] for name in parameters_of(step) & set(given)})
        except Exception as error:
            error.add_note(f"raised by the corruption {self._name!r}, severity {severity}")
            raise
        if made is None:
            raise InputError(
                f"the corruption {self._name!r} must return the changed inputs; it returned "
                "nothing. Put a return at its end."
            )
        return made

    def _stacked(self, made: list[Any], inputs: np.ndarray[Any, Any]) -> Any:
        if inputs.dtype == object and inputs.ndim == 1:  # texts, or arrays of several shapes
            out = np.empty(len(made), dtype=object)
            out[:] = made
            return out
        shapes = {np.shape(one) for one in made}
        if shapes != {inputs.shape[1:]}:
            raise InputError(
                f"the corruption {self._name!r} must return an array of shape {inputs.shape[1:]}, "
                f"as it was given; it returned {sorted(shapes)}."
            )
        return np.stack(made)


def copied_inputs(inputs: Any) -> Any:
    """A copy that shares nothing with what is given.

    Raises:
        InputError: If there is no way to make one.
    """
    try:
        return copy.deepcopy(inputs)
    except Exception as error:  # whatever an object of the user's own raises
        raise InputError(
            f"inputs must be of a kind that can be copied, since a function may change them; "
            f"{type(inputs).__name__} is not: {error}. Pass an array, a list or a DataFrame."
        ) from error
