"""What a model gave for one set of samples, with everything that is known about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_choice, check_labels, check_scores, to_array
from shiftcal._types import Floats, InputKind, Labels, Logits
from shiftcal.errors import FileError, InputError
from shiftcal.numerics.softmax import softmax


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of ``n`` samples for ``k`` classes, consistent with one another.

    The scores themselves stay as they came, on disk where they are memory-mapped, and their
    values are checked only by :meth:`logits`: a set with a missing number can still be looked at.

    Args:
        values: Logits or probabilities ``(n, k)``, float16, float32 or float64.
        input: Which of the two they are.
        labels: True classes ``(n,)`` in ``0..k-1``.
        features: What a layer of the model gave for the samples, ``(n, d)``.
        ids: A name for every sample, ``(n,)``.
        classes: Names of the ``k`` classes, in the order of the columns.
        source: The file they came from, to be named in messages.

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

    def __post_init__(self) -> None:
        kind = check_choice(self.input, ("logits", "probabilities"), name="input")
        values = _values(self.values, kind)
        n, k = values.shape
        checked = {
            "values": values,
            "labels": None if self.labels is None else check_labels(self.labels, n=n, k=k),
            "features": None if self.features is None else _features(self.features, n),
            "ids": None if self.ids is None else _ids(self.ids, n),
            "classes": None if self.classes is None else _classes(self.classes, k),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

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
            if not self.source:
                raise
            raise FileError(
                f"{self.source}: {error} (In a file, the name of the array or column says "
                "which kind the scores are.)"
            ) from error

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
            f"1 and 2 of them; got shape {z.shape}."
        )
    return z


def _features(features: object, n: int) -> Floats:
    f = _real(features, "features")
    if f.ndim != 2 or f.shape[0] != n or f.shape[1] < 1:
        raise InputError(
            f"features must have shape ({n}, d), a row per sample; got shape {f.shape}."
        )
    return f


def _real(values: object, name: str) -> Floats:
    """Floats as they are, unread if they are on disk; integers and long doubles as float64."""
    x = to_array(values, name=name)
    if x.dtype.kind not in "iuf":
        raise InputError(f"{name} must be real numbers; got dtype {x.dtype}.")
    if x.dtype.kind == "f" and x.dtype.itemsize <= 8:
        return x
    return x.astype(np.float64)


def _ids(ids: object, n: int) -> NDArray[np.str_]:
    names = to_array(ids, name="ids")
    if names.shape != (n,):
        raise InputError(f"ids must have one entry per row, shape ({n},); got shape {names.shape}.")
    if names.dtype.kind not in "USiu":
        raise InputError(f"ids must be text or whole numbers; got dtype {names.dtype}.")
    return as_text(names, "ids")


def _classes(classes: Sequence[str] | NDArray[Any], k: int) -> tuple[str, ...]:
    given = to_array(classes, name="classes")
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


def as_text(values: NDArray[Any], name: str) -> NDArray[np.str_]:
    """Text from text, from UTF-8 bytes, or from whole numbers."""
    try:
        return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values.astype(str)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} must be text in UTF-8; {error.object!r} is not. Save them as text, "
            "np.array(names, dtype=str)."
        ) from error
