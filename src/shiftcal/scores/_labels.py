"""Labels and ids as the columns of a table give them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError


def present(labels: Sequence[Any]) -> NDArray[Any] | None:
    """Labels of a table column: none if every cell is empty.

    Args:
        labels: Cells; ``None``, NaN and ``""`` are empty.

    Raises:
        InputError: If some cells are empty and some are not.
    """
    missing = sum(map(is_empty, labels))
    if missing == len(labels):
        return None
    if missing:
        raise InputError(
            f"labels must be given for every row or for none; {missing} of {len(labels)} are "
            "missing. Drop those rows, or the column."
        )
    return np.array(labels)


def is_empty(cell: Any) -> bool:
    """Whether a cell holds nothing: ``None``, NaN or ``""``."""
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def text_of(cells: Sequence[Any]) -> list[str]:
    """Cells as text, empty where they are empty."""
    return ["" if is_empty(cell) else str(cell) for cell in cells]
