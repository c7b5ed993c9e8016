"""Messages about scores in terms of their file: its name for their kind, and its rows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import InputKind

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
