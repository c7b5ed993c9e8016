"""Which row of a table of labels belongs to which image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.base import ImageSet
from shiftcal.errors import FileError


def joined(
    images: ImageSet, columns: Mapping[str, Sequence[str]], labels: NDArray[Any], *, source: str
) -> NDArray[np.intp]:
    """The row of every image, ``(n,)``.

    Names must be those of the images, letter by letter. Only if no image is found so, names
    without their folders are compared, which must tell the images apart.

    Args:
        images: The images.
        columns: Name of a column -> its cells, one a row; the first that has every image counts.
        labels: One a row; rows of one image must agree.
        source: What the table is called in messages.

    Raises:
        FileError: If an image is in no row, or in rows that disagree.
    """
    ids = images.ids(range(len(images)))
    faults: list[str] = []
    for column, cells in columns.items():
        wanted, names = ids, list(cells)
        if not set(ids) & set(names):
            wanted, names = _bare(ids), _bare(names)
        rows = {name: row for row, name in enumerate(names)}
        fault = (
            _missing(ids, wanted, column, rows)
            or _confused(ids, wanted, column)
            or _disagreement(wanted, names, labels)
        )
        if fault is None:
            return np.array([rows[name] for name in wanted], np.intp)
        faults.append(fault)
    raise FileError(f"{source} must have the label of every image of {images.name}: {faults[0]}")


def _bare(names: Sequence[str]) -> list[str]:
    """Names of files without their folders."""
    return [name.replace("\\", "/").rpartition("/")[2] for name in names]


def _missing(
    ids: Sequence[str], wanted: Sequence[str], column: str, rows: Mapping[str, int]
) -> str | None:
    missing = [name for name, key in zip(ids, wanted, strict=True) if key not in rows]
    if not missing:
        return None
    return (
        f"{len(missing):,} of {len(ids):,} are not in its column {column!r}, the first of them "
        f"{missing[0]!r}. Names are relative to the folder of the images; without the column, "
        "labels are taken in order."
    )


def _confused(ids: Sequence[str], wanted: Sequence[str], column: str) -> str | None:
    """Images of different names that are the same without their folders."""
    if len(set(wanted)) == len(set(ids)):
        return None
    twice = next(name for name, many in Counter(wanted).items() if many > 1)
    return (
        f"several images are called {twice!r}, so that its column {column!r} must say their "
        "folders as well."
    )


def _disagreement(wanted: Sequence[str], names: Sequence[str], labels: NDArray[Any]) -> str | None:
    known = set(wanted)
    seen: dict[str, Any] = {}
    for name, label in zip(names, labels.tolist(), strict=True):
        if name in known and seen.setdefault(name, label) != label:
            return f"it has {name!r} twice, as {seen[name]!r} and as {label!r}."
    return None
