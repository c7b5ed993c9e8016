"""What a model gave for one set of samples, with everything that is known about them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import (
    as_text,
    check_choice,
    check_classes,
    check_labels,
    check_scores,
    label_indices,
    plain,
    to_array,
)
from shiftcal._types import Floats, InputKind, Labels, Logits
from shiftcal.errors import FileError, InputError
from shiftcal.numerics.softmax import softmax
from shiftcal.scores._kinds import in_rows_of_the_file, in_terms_of_the_file

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

    def __post_init__(self) -> None:
        kind = check_choice(self.input, ("logits", "probabilities"), name="input")
        values = _values(self.values, kind)
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
