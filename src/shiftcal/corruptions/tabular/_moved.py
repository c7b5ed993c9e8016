"""Numbers of a column, moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions.tabular._column import Column
from shiftcal.corruptions.tabular._kinds import as_numbers
from shiftcal.corruptions.tabular._table import Change


def moved(column: Column, cells: Any, by: Any, *, clip: bool) -> Change | None:
    """Finite numbers of a column moved by so much each.

    Args:
        column: What was learnt of it.
        cells: The column.
        by: ``(n,)``.
        clip: Whether to stop at the ends of the range seen in the reference rows.
    """
    if column.scale == 0:
        return None
    numbers = as_numbers(cells)
    where = np.isfinite(numbers)
    values = numbers[where] + by[where]
    if clip:  # what was outside before is not pulled in
        low = np.minimum(numbers[where], column.observed.min())
        high = np.maximum(numbers[where], column.observed.max())
        values = np.clip(values, low, high)
    whole = column.kind == "integer"
    return Change(where, np.rint(values) if whole else values, whole=whole)
