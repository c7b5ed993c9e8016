"""From the raw parts of a file to consistent scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from shiftcal._checks import label_indices
from shiftcal._types import InputKind
from shiftcal.errors import FileError, InputError
from shiftcal.scores._labels import present
from shiftcal.scores._names import listed, refuse_near_misses
from shiftcal.scores._scores import Scores

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
