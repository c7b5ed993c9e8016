"""Text: names of classes and of samples, and labels given by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks.arrays import to_array
from shiftcal._checks.objects import plain
from shiftcal._registry import suggest
from shiftcal.errors import InputError


def check_classes(classes: object, *, k: int) -> tuple[str, ...]:
    """Names of the ``k`` classes in the order of the columns, all different and none empty."""
    given = plain(to_array(classes, name="classes"), "classes")
    if given.ndim != 1 or given.dtype.kind not in "US":
        raise InputError(
            f"classes must be a list of {k} names; got shape {given.shape} of dtype "
            f"{given.dtype}. Pass them as text, np.array(names, dtype=str)."
        )
    names = as_text(given, "classes").tolist()
    if len(names) != k:
        raise InputError(
            f"classes must name the {k} columns of the scores; got {len(names)} names."
        )
    if len(set(names)) < k:
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"classes must be different from one another; {twice!r} comes twice.")
    if "" in names:
        raise InputError(f"classes must have names; that of column {names.index('')} is empty.")
    return tuple(names)


def label_indices(labels: NDArray[Any], classes: Sequence[str] | None) -> NDArray[Any]:
    """Numbers as they are; text by the names of the classes, or else as numbers.

    Text that is a class name is that class even if it also looks like a number. Either all labels
    are names or all are numbers, so pass those of a whole file at a time.

    Args:
        labels: Numbers or text ``(n,)``.
        classes: The names, in the order of the columns.

    Raises:
        InputError: If a label is neither a class name nor a number, or could be meant as either.
    """
    given = plain(labels, "labels")
    if given.dtype.kind not in "US":
        return given
    distinct, where = np.unique(as_text(given, "labels"), return_inverse=True)
    if not set(distinct.tolist()) & set(classes or ()):
        numbers = _numbers(distinct)
        if numbers is not None:
            _refuse_numeric_names(str(distinct[0]), classes or ())
            return numbers[where.reshape(labels.shape)]
    return class_indices(distinct.tolist(), classes)[where.reshape(labels.shape)]


def class_indices(names: Sequence[str], classes: Sequence[str] | None) -> NDArray[np.intp]:
    """Where each name stands among the classes; never a number it may look like.

    Args:
        names: Any number of names.
        classes: All names, in the order of the columns.

    Raises:
        InputError: If a name is not among them.
    """
    position = {name: i for i, name in enumerate(classes or ())}
    for name in names:
        if name not in position:
            raise InputError(_not_a_class(name, classes))
    return np.array([position[name] for name in names], dtype=np.intp)


def as_text(values: NDArray[Any], name: str) -> NDArray[np.str_]:
    """Text from text, from UTF-8 bytes, or from whole numbers."""
    try:
        return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values.astype(str)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} must be text in UTF-8; {error.object!r} is not. Save them as text, "
            "np.array(names, dtype=str)."
        ) from error


def _numbers(text: NDArray[np.str_]) -> NDArray[np.float64] | None:
    joined = "".join(text.tolist())
    if "_" in joined or not joined.isascii():  # 1_0 is a number to Python, and to few others
        return None
    try:
        return text.astype(np.float64)
    except ValueError:
        return None


def _refuse_numeric_names(label: str, classes: Sequence[str]) -> None:
    """Raise where a number that is no class name may be one that is missing, and not an index."""
    numeric = next((name for name in classes if _is_whole(name)), None)
    if numeric is not None:
        raise InputError(
            f"labels must be names of classes where these are numbers, as {numeric!r} is; "
            f"{label!r} is no class, and could be meant as a name or as an index. "
            "Use the names, or save indices as integers, not as text."
        )


def _is_whole(name: str) -> bool:
    number = _numbers(np.array([name]))
    return number is not None and float(number[0]).is_integer()


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
