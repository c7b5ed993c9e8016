"""Scores as named arrays, for the formats that hold such."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.scores._scores import Scores


def numbers_of(scores: Scores, extra: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every array of numbers by its name, contiguous and in the machine's byte order."""
    parts = {scores.input: scores.values, "labels": scores.labels, "features": scores.features}
    given = {name: part for name, part in parts.items() if part is not None}
    return {name: _plain(part) for name, part in {**given, **extra}.items()}


def _plain(x: NDArray[Any]) -> NDArray[Any]:
    # Labels are written as int64 on every machine.
    dtype = np.dtype(np.int64) if x.dtype.kind == "i" else x.dtype.newbyteorder("=")
    return np.ascontiguousarray(x, dtype=dtype)
