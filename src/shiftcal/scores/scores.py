"""What a model gave for one set of samples."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import InitVar, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import (
    as_text,
    check_choice,
    check_classes,
    check_labels,
    check_scores,
    label_indices,
    normalize_rows,
    plain,
    to_array,
)
from shiftcal.errors import FileError, InputError
from shiftcal.numerics.softmax import softmax
from shiftcal.types import Floats, InputKind, Labels, Logits

# --------------------------------------------------------------------------------------
# Messages about scores in terms of their file: its name for their kind, and its rows.
# --------------------------------------------------------------------------------------

_OTHER: dict[InputKind, InputKind] = {"logits": "probabilities", "probabilities": "logits"}
_COLUMN = {"logits": "logit_<class>", "probabilities": "probability_<class>"}


def in_terms_of_the_file(source: str, kind: InputKind, reason: str) -> str:
    """Why the values of a file cannot be used.

    Where the reason speaks of ``input=``, which only Python can say, what to do is said anew: the
    kind follows from a name in the file.

    Args:
        source: The file.
        kind: What it says its scores are.
        reason: What the check of the values says.
    """
    if "input=" not in reason:
        return f"{source}: {reason}"
    fact = reason.partition(". ")[0]
    if "must be finite" in fact:
        remedy = (
            "Drop such rows; or, as infinite logits are often the logarithm of a zero "
            f"probability, save the probabilities, and {_rename(source, kind)}"
        )
    else:
        remedy = f"If they are {_OTHER[kind]}, {_rename(source, kind)}"
    constant = "; if they really are logits, add any constant to them (softmax ignores it)"
    return f"{source}: {fact}. {remedy}{constant if 'these logits are' in fact else ''}."


def in_rows_of_the_file(rows: NDArray[np.intp], reason: str) -> str:
    """A message that counts the rows of the file, from one that counts those taken from it.

    Args:
        rows: Where they stood in the file.
        reason: What the check of numbers says; text of the user's own must not stand in it.
    """
    return re.sub(r"\b(row|entry) (\d+)\b", lambda x: f"{x[1]} {rows[int(x[2])]}", reason)


def _rename(source: str, kind: InputKind) -> str:
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in (".csv", ".parquet"):
        return f"rename the columns {_COLUMN[kind]} to {_COLUMN[_OTHER[kind]]}"
    if suffix == ".npy":
        name = f"{path.stem.removesuffix(kind).removesuffix('_')}_{_OTHER[kind]}.npy"
        return f"rename the file to {name.removeprefix('_')}"
    return f"rename the array {kind!r} to {_OTHER[kind]!r}"


# --------------------------------------------------------------------------------------
# What a model gave for one set of samples, with everything that is known about them.
# --------------------------------------------------------------------------------------

_BINARY = {
    "logits": " For a binary score s, save np.column_stack([np.zeros_like(s), s]).",
    "probabilities": " For a binary probability p, save np.column_stack([1 - p, p]).",
}


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of ``n`` samples for ``k`` classes, consistent with one another.

    The scores themselves stay as they came, on disk where they are memory-mapped, and their
    values are checked only by :meth:`logits`: a set with a missing number can still be looked at.

    Args:
        values: Logits or probabilities ``(n, k)``, float16, float32 or float64.
        input: Which of the two they are.
        labels: True classes ``(n,)`` in ``0..k-1``, or by name if ``classes`` are given.
        features: What a layer of the model gave for the samples, ``(n, d)``.
        ids: A name for every sample, ``(n,)``.
        classes: Names of the ``k`` classes, in the order of the columns.
        source: The file they came from, to be named in messages.
        rows: Where the samples stood in that file, ``(n,)``, if others were left out; messages
            count rows so.
        normalize: Whether rows of probabilities are divided by their sum, as rounded ones must be;
            logits stay as they are.

    Raises:
        InputError: If lengths disagree, labels are out of range, or a name is given twice.
    """

    values: Floats
    input: InputKind = "logits"
    labels: Labels | None = None
    features: Floats | None = None
    ids: NDArray[np.str_] | None = None
    classes: tuple[str, ...] | None = None
    source: str = ""
    rows: NDArray[np.intp] | None = None
    normalize: InitVar[bool] = False

    def __post_init__(self, normalize: bool) -> None:
        kind = check_choice(self.input, ("logits", "probabilities"), name="input")
        values = _values(self.values, kind)
        if normalize and kind == "probabilities":
            values = normalize_rows(values)
        n, k = values.shape
        classes = None if self.classes is None else check_classes(self.classes, k=k)
        checked = {
            "values": values,
            "labels": None if self.labels is None else _labels(self.labels, n, classes, k),
            "features": None if self.features is None else _features(self.features, n),
            "ids": None if self.ids is None else _ids(self.ids, n),
            "classes": classes,
            "rows": None if self.rows is None else _rows(self.rows, n),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        known = [name for name in ("labels", "features", "ids") if getattr(self, name) is not None]
        named = "named classes" if self.classes else "classes"
        parts = [f"{self.n:,} rows", f"{self.k:,} {named}", self.input, *known]
        return f"<Scores: {', '.join(parts)}{f', from {self.source}' if self.source else ''}>"

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.values.shape[0]

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.values.shape[1]

    def logits(self) -> Logits:
        """Finite logits ``(n, k)`` in float32 or float64, whichever kind the scores are.

        Raises:
            InputError: If the values are not what they are said to be, or not finite. It is a
                FileError that names the file if they came from one.
        """
        try:
            return check_scores(self.values, input=self.input)
        except InputError as error:
            reason = str(error)
            if self.rows is not None:
                reason = in_rows_of_the_file(self.rows, reason)
            if not self.source:
                raise InputError(reason) from error
            raise FileError(in_terms_of_the_file(self.source, self.input, reason)) from error

    def as_kind(self, kind: InputKind) -> Scores:
        """The same set with scores of that kind; these very scores if they are so already.

        Probabilities are ``softmax(logits)``. Logits are the logarithms of probabilities, zero
        being raised to the smallest normal float32.
        """
        check_choice(kind, ("logits", "probabilities"), name="kind")
        if kind == self.input:
            return self
        z = self.logits()
        return replace(self, values=z if kind == "logits" else softmax(z), input=kind)


def _values(values: object, kind: str) -> Floats:
    z = _real(values, kind)
    if z.ndim != 2 or z.shape[0] < 1 or z.shape[1] < 2:
        raise InputError(
            f"{kind} must have shape (n, k), a row per sample and a column per class, at least "
            f"1 and 2 of them; got shape {z.shape}.{_BINARY[kind] if z.ndim == 1 else ''}"
        )
    return z


def _features(features: object, n: int) -> Floats:
    f = _real(features, "features")
    if f.ndim != 2 or f.shape[0] != n or f.shape[1] < 1:
        raise InputError(
            f"features must have shape ({n}, d), a row per sample; got shape {f.shape}."
        )
    return f


def _labels(labels: object, n: int, classes: tuple[str, ...] | None, k: int) -> Labels:
    given = to_array(labels, name="labels")
    return check_labels(given if classes is None else label_indices(given, classes), n=n, k=k)


def _real(values: object, name: str) -> Floats:
    """Floats as they are, unread if they are on disk; integers and long doubles as float64."""
    x = to_array(values, name=name)
    if x.dtype.kind not in "iuf":
        raise InputError(f"{name} must be real numbers; got dtype {x.dtype}.")
    if x.dtype.kind == "f" and x.dtype.itemsize <= 8:
        return x
    return x.astype(np.float64)


def _ids(ids: object, n: int) -> NDArray[np.str_]:
    names = plain(to_array(ids, name="ids"), "ids")
    if names.shape != (n,):
        raise InputError(f"ids must have one entry per row, shape ({n},); got shape {names.shape}.")
    if names.dtype.kind not in "USiu":
        raise InputError(f"ids must be text or whole numbers; got dtype {names.dtype}.")
    return as_text(names, "ids")


def _rows(rows: object, n: int) -> NDArray[np.intp]:
    where = to_array(rows, name="rows")
    if where.shape != (n,) or where.dtype.kind not in "iu":
        raise InputError(
            f"rows must be whole numbers, one per sample, shape ({n},); got shape {where.shape} of "
            f"dtype {where.dtype}."
        )
    return where.astype(np.intp, copy=False)


# --------------------------------------------------------------------------------------
# Names found in a file that are almost the expected ones: a typing mistake must be noticed.
# --------------------------------------------------------------------------------------

# Shorter names have too many innocent neighbours: 'idx' is not a mistyped 'id'.
_SHORTEST = 5
_ALIKE = 0.8
_LISTED = 8


def is_near_miss(name: str, expected: str) -> bool:
    """Whether ``name`` is ``expected`` in other case or number, or with a letter or two wrong."""
    a, b = name.strip().casefold(), expected.casefold()
    if name == expected:
        return False
    if a.removesuffix("s") == b.removesuffix("s"):
        return True
    return (
        len(expected) >= _SHORTEST
        and difflib.SequenceMatcher(None, a, b, autojunk=False).ratio() >= _ALIKE
    )


def refuse_near_misses(path: Path, found: Iterable[str], expected: Sequence[str]) -> None:
    """Raise if a name that is absent seems to be there under a mistyped one.

    Raises:
        FileError: Naming both.
    """
    names = list(found)
    for wanted in expected:
        if wanted in names:
            continue
        for name in names:
            if name not in expected and is_near_miss(name, wanted):
                raise FileError(mistyped(path, name, wanted))


def mistyped(path: Path, name: str, wanted: str) -> str:
    """The message about one mistyped name."""
    return (
        f"{path} holds {name!r}, which is not read. Did you mean {wanted!r}? "
        "Rename it, or leave it out if it is something else."
    )


def listed(names: Sequence[str]) -> str:
    """The first few names, for a message about a file that lacks one."""
    shown = ", ".join(map(repr, names[:_LISTED]))
    if len(names) > _LISTED:
        return f"{shown} and {len(names) - _LISTED} more"
    return shown or "nothing"


# --------------------------------------------------------------------------------------
# Labels and ids as the columns of a table give them.
# --------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------
# From the raw parts of a file to consistent scores.
# --------------------------------------------------------------------------------------

KINDS: tuple[InputKind, InputKind] = ("logits", "probabilities")
OPTIONAL = ("labels", "features", "ids", "classes")


def from_arrays(path: Path, names: Collection[str], load: Callable[[str], NDArray[Any]]) -> Scores:
    """Scores from a file of named arrays.

    Args:
        path: The file, for messages.
        names: Every name it holds.
        load: Gives the array of one name; called only for those that are used.
    """
    kind = the_kind(path, names)
    refuse_near_misses(path, names, OPTIONAL)
    parts = {name: load(name) for name in OPTIONAL if name in names}
    return assemble(path, kind, load(kind), **parts)


def the_kind(path: Path, names: Collection[str]) -> InputKind:
    """Which of the two kinds of scores is there.

    Raises:
        FileError: If none is, or both.
    """
    found = [kind for kind in KINDS if kind in names]
    if len(found) == 2:
        raise FileError(
            f"{path} holds both logits and probabilities, and only one of them can be meant. "
            "Leave the other out."
        )
    if not found:
        raise FileError(
            f"{path} must hold 'logits' (before softmax) or 'probabilities' (after it); it holds "
            f"{listed(sorted(names))}. Save the scores under the name that says what they are."
        )
    return found[0]


def assemble(
    path: Path,
    kind: InputKind,
    values: NDArray[Any],
    *,
    labels: NDArray[Any] | list[Any] | None = None,
    features: NDArray[Any] | None = None,
    ids: NDArray[Any] | Sequence[str] | None = None,
    classes: NDArray[Any] | Sequence[str] | None = None,
) -> Scores:
    """Scores from their parts.

    Args:
        path: The file, for messages.
        kind: What the scores are.
        values: The scores ``(n, k)``.
        labels: Indices or names of classes ``(n,)``; a list holds the cells of a table, of which
            some may be empty.
        features: Features ``(n, d)``.
        ids: Names of the samples ``(n,)``.
        classes: Names of the classes ``(k,)``.

    Raises:
        FileError: If the parts do not fit together, naming the file.
    """
    try:
        # What Scores takes is wider than what it then has: it checks, and makes text of bytes.
        rest: dict[str, Any] = {"features": features, "ids": ids, "classes": classes}
        scores = Scores(values, kind, **rest, source=str(path))
        given = present(labels) if isinstance(labels, list) else labels
        if given is None:
            return scores
        return replace(scores, labels=label_indices(given, scores.classes))
    except InputError as error:
        raise FileError(f"{path}: {error}") from error
