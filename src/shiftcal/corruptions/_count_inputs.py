"""How many inputs there are, whatever holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shiftcal.errors import InputError


def count_inputs(inputs: Any) -> int:
    """The number of inputs: rows of an array, a matrix or a frame, items of a list.

    Raises:
        InputError: If that cannot be told, or there are none.
    """
    if isinstance(inputs, (str, bytes)):
        raise InputError("inputs must be a list of texts; got one text. Pass [text].")
    if isinstance(inputs, Mapping):
        raise InputError(
            "inputs must be in order, one after the other; got a mapping. Pass a DataFrame, or a "
            "list of one mapping per input."
        )
    shape = getattr(inputs, "shape", None)  # sparse matrices have no length
    try:
        count = int(shape[0]) if isinstance(shape, tuple) and shape else len(inputs)
    except TypeError as error:
        raise InputError(
            "inputs must be an array, a DataFrame, a list, or what else has a length; got "
            f"{type(inputs).__name__}. Of a generator, pass list(inputs)."
        ) from error
    if count == 0:
        raise InputError("inputs must be one at least; got none.")
    return count
