"""Enlarging the middle of an axis: which source positions its pixels read."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def crop_length(length: int, factor: float) -> int:
    """How many pixels in the middle of ``length`` fill it when enlarged by ``factor``."""
    return math.ceil(length / factor)


def zoom_axis(length: int, factor: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Where each of ``length`` pixels reads in the cut-out middle: ``(1 - t) v[i] + t v[i + 1]``.

    The middle ``c = ceil(length / factor)`` pixels become ``round(c factor)``, first pixel on first
    and last on last (position ``k (c - 1) / (round(c factor) - 1)``, as scipy's ``zoom`` has it),
    of which the middle ``length`` stay.

    Returns:
        The indices ``i`` and the weights ``t``, each ``(length,)``; ``i`` counts from the start of
        the cut-out, which begins at pixel ``(length - c) // 2``.
    """
    cut = crop_length(length, factor)
    enlarged = round(cut * factor)
    trim = (enlarged - length) // 2
    position = (np.arange(length) + trim) * ((cut - 1) / (enlarged - 1))
    index = np.minimum(np.floor(position).astype(np.int64), cut - 2)
    return index, np.minimum(position - index, 1.0)
