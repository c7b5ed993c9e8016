"""Which group every row belongs to: a camera, a site, a batch."""

from __future__ import annotations

from datetime import date
from math import isnan
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks.arrays import to_array
from shiftcal.errors import InputError

# pandas' missing values, which compare with nothing.
_MISSING_TYPES = ("NAType", "NaTType")
_JOIN = "Groups by several columns: join them to one text first, such as 'site 3, camera 1'."


def check_row_groups(groups: object, *, n: int) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The names of the groups in the order they come, and of every row the number of its group.

    Names are text; whole numbers, truth values and dates stand for the text they are written as,
    so that 7, 7.0 and ``"7"`` are one group, in memory and in a file.

    Args:
        groups: ``(n,)`` one entry per row: a list, an array, a column of a data frame.
        n: How many rows there are.

    Raises:
        InputError: If they are as many as something else, an entry is missing, or it is of a kind
            that has no text of its own.
    """
    known: dict[str, int] = {}
    codes = [known.setdefault(name, len(known)) for name in _texts(groups, n)]
    return tuple(known), np.array(codes, dtype=np.intp)


def _texts(groups: object, n: int) -> list[str]:
    # A list of names with a NaN among them would become text throughout, "nan" included.
    given = to_array(
        _objects(groups) if isinstance(groups, (list, tuple)) else groups, name="groups"
    )
    if given.ndim != 1:
        hint = "Pass groups.ravel()." if given.size == len(given) else _JOIN
        raise InputError(
            f"groups must have one entry per row, shape ({n},); got shape {given.shape}. {hint}"
        )
    if len(given) != n:
        raise InputError(
            f"groups must have one entry per row: {n} rows, {len(given)} entries. "
            "Check that both come from the same samples in the same order."
        )
    if given.dtype.kind in "OSTMf":
        return [_text(row, entry) for row, entry in enumerate(_entries(given))]
    if given.dtype.kind not in "Uiub":
        raise InputError(f"groups must be names or whole numbers; got dtype {given.dtype}.")
    texts: list[str] = given.astype(str).tolist()
    if "" in texts:
        raise InputError(_missing(texts.index(""), ""))
    return texts


def _objects(groups: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
    """One entry a place, whatever it is: numpy would make columns of pairs."""
    given = np.empty(len(groups), dtype=object)
    for row, entry in enumerate(groups):
        given[row] = entry
    return given


def _entries(given: NDArray[Any]) -> list[Any]:
    if given.dtype.kind == "M":  # dates are written as they are, not as numbers
        return [None if text == "NaT" else text for text in np.datetime_as_string(given).tolist()]
    return list(given.tolist())


def _text(row: int, entry: object) -> str:
    """The text that an entry stands for."""
    if isinstance(entry, bytes):
        entry = entry.decode("utf-8", "backslashreplace")
    if _is_missing(entry):
        raise InputError(_missing(row, entry))
    if isinstance(entry, (str, bool, np.bool_, date)):  # pandas' timestamps are dates too
        return str(entry)
    whole = isinstance(entry, (float, np.floating)) and float(entry).is_integer()
    if whole or isinstance(entry, Integral):
        return str(int(entry))  # type: ignore[call-overload]
    raise InputError(
        "groups must be names, whole numbers or dates; that of row "
        f"{row} is {repr(entry)[:40]} (the first row is 0). {_JOIN}"
    )


def _is_missing(entry: object) -> bool:
    if entry is None or type(entry).__name__ in _MISSING_TYPES:
        return True
    return entry == "" if isinstance(entry, str) else isinstance(entry, float) and isnan(entry)


def _missing(row: int, entry: object) -> str:
    return (
        f"groups must be given for every row; that of row {row} is missing ({entry!r}; the first "
        "row is 0). Give such rows a group of their own, such as 'unknown', or leave them out."
    )
