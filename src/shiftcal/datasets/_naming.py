"""Labels as a file gives them, numbers or names, some perhaps missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError


def named_labels(
    labels: Sequence[int | str | None],
    classes: Sequence[str] | None,
    *,
    ids: Sequence[object],
    name: str,
) -> tuple[Sequence[str] | None, NDArray[Any] | None]:
    """The names of the classes and the labels, either of them ``None`` if there are none.

    Labels that are all names give the classes, sorted, unless these are known. ``-1`` for all is
    how the labels of a test set are kept secret: there are none then.

    Args:
        labels: One an image; ``None`` where it has none.
        classes: Names of the classes, if they are known.
        ids: What the images are called.
        name: What the set is called in messages.

    Raises:
        FileError: If some images have a label and some have none, or names and numbers are mixed.
    """
    missing = [i for i, label in enumerate(labels) if label is None]
    if len(missing) == len(labels) or all(label == -1 for label in labels):
        return classes, None
    if missing:
        raise FileError(
            f"{name}: either all images have a label or none has; {len(missing):,} of "
            f"{len(labels):,} have none, the first of them {ids[missing[0]]}."
        )
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) == 2:
        first = next(i for i, label in enumerate(labels) if isinstance(label, str))
        raise FileError(
            f"{name}: labels must be all numbers or all names; that of {ids[first]} is "
            f"{labels[first]!r:.40}, and others are numbers."
        )
    if kinds == {True} and classes is None:
        classes = sorted({str(label) for label in labels})
    return classes, np.array(labels)
