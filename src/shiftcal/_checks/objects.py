"""Arrays of Python objects, as pandas gives them for text, and what they really hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError

_NUMBER = (int, float, np.integer, np.floating)


def plain(x: NDArray[Any], name: str) -> NDArray[Any]:
    """Text or numbers from an array of objects that are all the one or all the other.

    An array of any other type is returned as it is.

    Raises:
        InputError: Naming the first entry that is neither, or not what the others are.
    """
    if x.dtype.kind not in "OT":  # T is numpy's text of any length
        return x
    entries = x.ravel().tolist()
    text = any(isinstance(entry, str) for entry in entries)
    for i, entry in enumerate(entries):
        if not (isinstance(entry, str) if text else _is_number(entry)):
            raise InputError(
                f"{name} must be all text or all whole numbers; entry {i} is {repr(entry)[:40]}. "
                "Fill in what is missing, or drop those rows, and convert the rest."
            )
    return np.array(entries, dtype=np.str_ if text else None).reshape(x.shape)


def _is_number(entry: object) -> bool:
    return isinstance(entry, _NUMBER) and not isinstance(entry, bool)
