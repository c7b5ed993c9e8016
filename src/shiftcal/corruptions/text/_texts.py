"""Texts out of whatever holds them, and back into the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.errors import InputError


def checked_texts(inputs: Any) -> list[str]:
    """Texts as a list.

    Raises:
        InputError: If they are not a list, a tuple, an array ``(n,)`` or a Series of text.
    """
    is_series = hasattr(inputs, "to_numpy") and getattr(inputs, "ndim", None) == 1
    if not (is_series or isinstance(inputs, (list, tuple, np.ndarray))):
        hint = " Pass the column of texts." if getattr(inputs, "ndim", None) == 2 else ""
        raise InputError(
            "texts must be a list, a tuple, an array or a Series of text; got "
            f"{type(inputs).__name__}.{hint}"
        )
    if isinstance(inputs, np.ndarray) and inputs.ndim != 1:
        raise InputError(f"texts must be an array of shape (n,); got shape {inputs.shape}.")
    texts = list(inputs)
    for row, each in enumerate(texts):
        if not isinstance(each, str):
            raise InputError(
                f"every text must be text; that of row {row} is {each!r}. Put '' where there is "
                "none, and decode bytes."
            )
    return [str(each) for each in texts]


def put_back(texts: list[str], inputs: Any) -> Any:
    """Texts in the kind of container that others came in."""
    if isinstance(inputs, list):
        return texts
    if isinstance(inputs, tuple):
        return tuple(texts)
    if isinstance(inputs, np.ndarray):
        return np.array(texts) if inputs.dtype.kind == "U" else np.array(texts, inputs.dtype)
    return type(inputs)(texts, index=inputs.index, name=inputs.name, dtype=inputs.dtype)
