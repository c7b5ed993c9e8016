"""Whether what a model gave for a batch can be used; messages name the images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import to_array
from shiftcal.errors import InputError

_SHAPES = {
    "output": ("k", "a row an image and a column a class"),
    "features": ("d", "a row an image, and not empty"),
}


class _Part(Protocol):
    @property
    def logits(self) -> NDArray[Any]: ...

    @property
    def features(self) -> NDArray[Any] | None: ...


def check_rows(
    output: Any, *, n: int, start: int, where: str, noun: str = "output"
) -> NDArray[Any]:
    """Finite numbers with a row for each of ``n`` images, the first of them image ``start``."""
    z = to_array(output, name=f"the model's {noun} for {where}")
    columns, meaning = _SHAPES[noun]
    if z.ndim != 2 or len(z) != n or (noun == "features" and z.shape[1] == 0):
        raise InputError(
            f"the model's {noun} for {where} must have shape ({n}, {columns}), {meaning}; got "
            f"shape {z.shape}. Pass a function that returns that."
        )
    if z.dtype.kind not in "fiu":
        raise InputError(f"the model's {noun} for {where} must be numbers; got dtype {z.dtype}.")
    bad = ~np.isfinite(z).all(axis=1)
    if bad.any():
        raise InputError(
            f"the model's {noun} for {where} must be finite; {int(bad.sum())} of {n} rows hold NaN "
            f"or infinity, the first that of image {start + int(bad.argmax())}. Look at the "
            "weights, and at mean and std of the preprocessing."
        )
    return z


def check_width(z: NDArray[Any], k: int | None, *, where: str, names: bool) -> None:
    """Refuse logits that have not a column for each of ``k`` classes, if that is known."""
    if z.shape[1] < 2:
        raise InputError(
            f"the model's output for {where} must have a column per class and at least two; got "
            f"shape {z.shape}. For a binary score s, return np.column_stack([np.zeros_like(s), s])."
        )
    if k is not None and z.shape[1] != k:
        wanted = f"the {k} classes named" if names else f"the {k} columns of the images before"
        raise InputError(
            f"the model's output for {where} must have a column for each of {wanted}; got "
            f"{z.shape[1]} columns."
        )


def check_same_features(parts: Sequence[_Part], *, first: int) -> None:
    """Refuse batches of which one has other features than the one before, or none."""
    widths = [None if part.features is None else part.features.shape[1] for part in parts]
    start = first
    for part, width in zip(parts, widths, strict=True):
        stop = start + len(part.logits)
        if width != widths[0]:
            raise InputError(
                f"the model's features for images {start} to {stop - 1} must have as many columns "
                f"as those of the images before, {widths[0] or 'none'}; got {width or 'none'}."
            )
        start = stop
