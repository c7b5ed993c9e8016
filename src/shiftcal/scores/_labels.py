"""Labels as files give them, class indices or class names, to indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._registry import suggest
from shiftcal.errors import InputError
from shiftcal.scores._scores import as_text


def label_indices(labels: NDArray[Any], classes: Sequence[str] | None) -> NDArray[Any]:
    """Numbers as they are; text by the names of the classes, or else as numbers.

    Text that is a class name is that class even if it also looks like a number.

    Args:
        labels: Numbers or text ``(n,)``.
        classes: The names, in the order of the columns.

    Raises:
        InputError: If a label is neither a class name nor a number.
    """
    if labels.dtype.kind not in "US":
        return labels
    distinct, where = np.unique(as_text(labels, "labels"), return_inverse=True)
    position = {name: i for i, name in enumerate(classes or ())}
    unknown = [name for name in distinct.tolist() if name not in position]
    if unknown and len(unknown) == len(distinct):
        numbers = _numbers(distinct)
        if numbers is not None:
            return numbers[where.reshape(labels.shape)]
    if unknown:
        raise InputError(_not_a_class(unknown[0], classes))
    return np.array([position[name] for name in distinct.tolist()])[where.reshape(labels.shape)]


def present(labels: Sequence[Any]) -> NDArray[Any] | None:
    """Labels of a table column: none if every cell is empty.

    Args:
        labels: Cells; ``None``, NaN and ``""`` are empty.

    Raises:
        InputError: If some cells are empty and some are not.
    """
    missing = sum(map(_is_empty, labels))
    if missing == len(labels):
        return None
    if missing:
        raise InputError(
            f"labels must be given for every row or for none; {missing} of {len(labels)} are "
            "missing. Drop those rows, or the column."
        )
    return np.array(labels)


def _is_empty(cell: Any) -> bool:
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def _numbers(text: NDArray[np.str_]) -> NDArray[np.float64] | None:
    try:
        return text.astype(np.float64)
    except ValueError:
        return None


def _not_a_class(name: str, classes: Sequence[str] | None) -> str:
    if classes is None:
        return (
            f"labels must be class indices where classes have no names; got {name!r}. "
            "Add the names of the classes in the order of the columns."
        )
    return (
        f"labels must be among the {len(classes)} classes; {name!r} is not. "
        f"{suggest(name, classes[:10])}"
    )
