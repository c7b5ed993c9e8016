"""What is known of the images of a set: labels, names of classes, and other fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import as_text, check_classes, check_labels, label_indices, plain, to_array
from shiftcal._types import Labels
from shiftcal.errors import InputError


def checked_truth(
    labels: object, classes: Sequence[str] | None, *, n: int, name: str
) -> tuple[tuple[str, ...] | None, Labels | None]:
    """The names of the classes and the labels as indices of them; either may be ``None``.

    Args:
        labels: ``(n,)``, indices, or names if the classes have names.
        classes: Their names, in the order of the indices.
        n: How many images there are.
        name: What the set is called in messages.

    Raises:
        InputError: If they do not fit one another, or are not ``n``.
    """
    try:
        names = None if classes is None else check_classes(classes, k=len(classes))
        if labels is None:
            return names, None
        given = label_indices(to_array(labels, name="labels"), names)
        return names, check_labels(given, n=n, k=len(names) if names else _at_least(given))
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def are_names(labels: object, classes: Sequence[str] | None) -> bool:
    """Whether labels are meant as names of these classes, not as numbers of columns.

    Text that is a number is a name if a class is called so, or may be.
    """
    given = plain(to_array(labels, name="labels"), "labels")
    if given.dtype.kind not in "US":
        return False
    if set(as_text(given.ravel(), "labels").tolist()) & set(classes or ()):
        return True
    try:
        label_indices(given, classes)
        label_indices(given, None)
    except InputError:  # no number, or not certainly one: for the check of the labels to refuse
        return True
    return False


def _at_least(labels: NDArray[Any]) -> int:
    """Classes there must be, going by the labels alone; two if that cannot be told."""
    if labels.dtype.kind not in "iuf" or not labels.size or not np.isfinite(labels).all():
        return 2
    return max(int(labels.max()) + 1, 2)


def checked_field(values: object, *, n: int, name: str) -> NDArray[Any]:
    """One entry an image, ``(n,)``."""
    given = plain(to_array(values, name=name), name)
    if given.shape != (n,):
        raise InputError(f"{name} must have one entry an image, shape ({n},); got {given.shape}.")
    return given
