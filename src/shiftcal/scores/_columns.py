"""Scores as columns of a table: what the columns are called, read and written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import InputKind
from shiftcal.errors import FileError
from shiftcal.scores._assemble import KINDS
from shiftcal.scores._names import is_near_miss, listed, mistyped, refuse_near_misses
from shiftcal.scores._scores import Scores

LABEL, ID = "label", "id"
PREFIX = {"logits": "logit_", "probabilities": "probability_", "features": "feature_"}


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are what.

    Attributes:
        kind: What the scores are.
        scores: Their columns in the order of the classes, or the one list column.
        features: Columns of features in order, or the one list column; may be empty.
        classes: Names of the classes; ``None`` if they are numbered or in a list column.
        label: Whether there is a column of labels.
        id: Whether there is a column of ids.
    """

    kind: InputKind
    scores: tuple[str, ...]
    features: tuple[str, ...]
    classes: tuple[str, ...] | None
    label: bool
    id: bool


def layout_of(path: Path, names: Sequence[str], *, lists: Collection[str] = ()) -> Layout:
    """Find the columns of scores, features, labels and ids by their names.

    Args:
        path: The file, for messages.
        names: Names of all columns.
        lists: Those of ``logits``, ``probabilities`` and ``features`` that are list columns.

    Raises:
        FileError: If scores are absent or ambiguous, or a name is repeated or mistyped.
    """
    groups = {what: _group(path, names, what, what in lists) for what in PREFIX}
    _refuse_mistyped(path, names, groups, lists)
    kind = _kind(path, names, groups)
    scores = groups[kind]
    suffixes = [name.removeprefix(PREFIX[kind]) for name in scores]
    numbered = kind in lists or set(suffixes) == {str(i) for i in range(len(suffixes))}
    layout = Layout(
        kind=kind,
        scores=_in_order(scores, PREFIX[kind]) if numbered else tuple(scores),
        features=_in_order(groups["features"], PREFIX["features"]),
        classes=None if numbered else tuple(suffixes),
        label=LABEL in names,
        id=ID in names,
    )
    if kind not in lists and len(scores) < 2:
        raise FileError(
            f"{path} must have a column per class and at least two; it has only {scores[0]!r}. "
            "For a binary probability p, write probability_0 = 1 - p and probability_1 = p."
        )
    refuse_repeated(path, names, (*layout.scores, *layout.features, LABEL, ID))
    return layout


def refuse_repeated(path: Path, names: Sequence[str], used: Sequence[str]) -> None:
    """Raise if a column that is read is there twice; others may be.

    Raises:
        FileError: Naming it.
    """
    for name in used:
        if names.count(name) > 1:
            raise FileError(f"{path} has the column {name!r} twice; leave one out.")


def _group(path: Path, names: Sequence[str], what: str, is_list: bool) -> list[str]:
    columns = [name for name in names if name.startswith(PREFIX[what])]
    if is_list and columns:
        raise FileError(
            f"{path} holds {what} both as the list column {what!r} and in columns such as "
            f"{columns[0]!r}. Leave one of the two out."
        )
    return [what] if is_list else columns


def _kind(path: Path, names: Sequence[str], groups: Mapping[str, Sequence[str]]) -> InputKind:
    found = [kind for kind in KINDS if groups[kind]]
    if len(found) == 2:
        raise FileError(
            f"{path} has columns of both logits ({groups['logits'][0]!r}) and probabilities "
            f"({groups['probabilities'][0]!r}), and only one of them can be meant. "
            "Leave the other out."
        )
    if not found:
        raise FileError(
            f"{path} must have columns logit_<class> or probability_<class>, one per class; "
            f"its columns are {listed(names)}. Name them in the first line."
        )
    return found[0]


def _refuse_mistyped(
    path: Path, names: Sequence[str], groups: Mapping[str, Sequence[str]], lists: Collection[str]
) -> None:
    refuse_near_misses(path, names, (LABEL, ID))
    known = {name for group in groups.values() for name in group}
    for name in names:
        stem, underscore, suffix = name.partition("_")
        if name in known or not underscore:
            continue
        for what, prefix in PREFIX.items():
            if what not in lists and is_near_miss(stem, prefix[:-1]):
                raise FileError(mistyped(path, name, prefix + suffix))


def _in_order(names: Sequence[str], prefix: str) -> tuple[str, ...]:
    """By number where all are numbered, since tables are often sorted as 0, 1, 10, 2."""
    suffixes = [name.removeprefix(prefix) for name in names]
    if all(suffix.isascii() and suffix.isdigit() for suffix in suffixes):
        return tuple(sorted(names, key=lambda name: int(name.removeprefix(prefix))))
    return tuple(names)


def columns_of(scores: Scores, extra: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every column to write, by name and in order; classes by their names where they have any."""
    columns: dict[str, NDArray[Any]] = {}
    if scores.ids is not None:
        columns[ID] = scores.ids
    if scores.labels is not None:
        columns[LABEL] = _named(scores.labels, scores.classes)
    for name, values in extra.items():
        columns[name] = _named(values, scores.classes) if name == "predicted" else values
    suffixes = scores.classes or [str(i) for i in range(scores.k)]
    for i, suffix in enumerate(suffixes):
        columns[PREFIX[scores.input] + suffix] = scores.values[:, i]
    if scores.features is not None:
        for i in range(scores.features.shape[1]):
            columns[f"{PREFIX['features']}{i}"] = scores.features[:, i]
    return columns


def _named(indices: NDArray[Any], classes: Sequence[str] | None) -> NDArray[Any]:
    return indices if classes is None else np.array(classes, dtype=np.str_)[indices]
