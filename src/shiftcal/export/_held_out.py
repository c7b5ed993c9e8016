"""Rows kept from a classifier that is fitted, for its calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError


def held_out_rows(
    y: NDArray[Any], part: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to fit on and rows to calibrate on, both ascending; every class is among the first.

    Args:
        y: ``(n,)`` labels.
        part: Of the rows of a class that are held out: one at least, but of a class of one none.
        seed: Of the draw.

    Raises:
        InputError: If no class has two rows.
    """
    rng = np.random.default_rng(seed)
    _, inverse = np.unique(y, return_inverse=True)
    held = np.zeros(len(y), dtype=bool)
    for one in range(inverse.max() + 1):
        rows = np.flatnonzero(inverse == one)
        count = min(max(1, round(part * len(rows))), len(rows) - 1)
        held[rng.permutation(rows)[:count]] = True
    if not held.any():
        raise InputError(
            "y must have a class with two rows at least, one to fit the classifier on and one to "
            f"calibrate it; got n_samples={len(y)}, all of different classes. Take more rows, or "
            "a classifier that is fitted."
        )
    return np.flatnonzero(~held), np.flatnonzero(held)


def rows_of(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of an array, a sparse matrix, a data frame or a list."""
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, rows)
