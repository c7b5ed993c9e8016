"""The surrogate bank: J labelled sets of logits in order, the first the clean calibration set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from shiftcal._checks import (
    check_choice,
    check_classes,
    check_count,
    check_features,
    check_labels,
    check_logits,
    check_scores,
    label_indices,
    to_array,
)
from shiftcal._types import Floats, InputKind, Labels, Logits
from shiftcal.errors import InputError
from shiftcal.numerics.softmax import p_max
from shiftcal.surrogates.severities import refuse_misplaced, severities_of
from shiftcal.surrogates.summary import SetSummary

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EMPTY = "a surrogate bank needs at least one set: the clean calibration set."


@dataclass(frozen=True, eq=False)
class SurrogateSet:
    """Labelled logits of the calibration samples under one corruption.

    Attributes:
        logits: ``(n, k)``.
        labels: ``(n,)``.
        name: What it is called in tables and messages.
        corruption: What made it; ``None`` for the clean set.
        severity: 0 for the clean set, 1 and up for the others; ``None`` if not known.
        features: ``(n, d)``, needed by CPCS and TransCal of the clean set only.
    """

    logits: Logits
    labels: Labels
    name: str
    corruption: str | None = None
    severity: int | None = None
    features: Floats | None = None

    def __post_init__(self) -> None:
        logits = check_logits(self.logits)
        n, k = logits.shape
        object.__setattr__(self, "logits", logits)
        object.__setattr__(self, "labels", check_labels(self.labels, n=n, k=k))
        if self.features is not None:
            features = check_features(self.features, name="features", n=n)
            object.__setattr__(self, "features", features)
        if self.severity is not None:
            whose = f"severity of set {self.name!r}"
            object.__setattr__(self, "severity", check_count(self.severity, name=whose, least=0))

    def __len__(self) -> int:
        return len(self.logits)

    def confidence(self) -> NDArray[np.float64]:
        """Raw p_max of every row."""
        return p_max(self.logits)

    def summary(self) -> SetSummary:
        """The set in numbers."""
        confidence = self.confidence()
        return SetSummary(
            name=self.name,
            corruption=self.corruption,
            severity=self.severity,
            n=len(self),
            mean_confidence=float(confidence.mean()),
            sd_confidence=float(confidence.std()),
            accuracy=float((self.logits.argmax(axis=1) == self.labels).mean()),
        )


class SurrogateBank:
    """J labelled sets of logits in order of rising difficulty, the first the clean one.

    Make one with :meth:`from_arrays` or :meth:`from_files`, or read a folder with :meth:`load`.

    Args:
        sets: The sets, all with the same number of classes; the severity of the first is 0, that of
            the others 1 or more, where they are known.
        classes: Names of the classes in the order of the columns.
        input: What the model gave: ``"logits"`` or ``"probabilities"``. The sets hold logits
            either way; methods must be made with the same ``input``.
    """

    def __init__(
        self,
        sets: Sequence[SurrogateSet],
        *,
        classes: Sequence[str] | None = None,
        input: str = "logits",
    ) -> None:
        if not sets:
            raise InputError(_EMPTY)
        k = _one_width([s.logits for s in sets])
        refuse_misplaced([s.name for s in sets], [s.severity for s in sets])
        self.sets = tuple(sets)
        self.classes = None if classes is None else check_classes(classes, k=k)
        self.input = cast(InputKind, check_choice(input, ("logits", "probabilities"), name="input"))

    @classmethod
    def from_arrays(
        cls,
        scores: Iterable[object],
        labels: object,
        *,
        features: object = None,
        corruption: str | None = None,
        severities: Sequence[int] | None = None,
        classes: Sequence[str] | None = None,
        input: str = "logits",
    ) -> SurrogateBank:
        """A bank from arrays in memory, which are copied.

        Args:
            scores: One array ``(n, k)`` per set, the clean one first.
            labels: ``(n,)`` if all sets hold the same samples, else one such array per set; class
                indices, or names if ``classes`` are given.
            features: ``(n, d)`` of the clean set, for CPCS and TransCal.
            corruption: Name of the corruption behind the other sets.
            severities: Their severities, 1 or more; 1, 2, ... if a corruption is named.
            classes: Names of the classes in the order of the columns.
            input: What ``scores`` are: ``"logits"`` or ``"probabilities"``.
        """
        logits = _logits_per_set(scores, input)
        names = None if classes is None else check_classes(classes, k=logits[0].shape[1])
        per_set = _labels_per_set(labels, [z.shape for z in logits], names)
        copied = None if features is None else np.array(check_features(features, name="features"))
        levels = severities_of(len(logits), corruption, severities)
        sets = [
            SurrogateSet(
                z,
                y,
                set_name(j, corruption if j else None, level),
                corruption=corruption if j else None,
                severity=level,
                features=copied if j == 0 else None,
            )
            for j, (z, y, level) in enumerate(zip(logits, per_set, levels, strict=True))
        ]
        return cls(sets, classes=names, input=input)

    @classmethod
    def from_files(cls, paths: Sequence[str | os.PathLike[str]]) -> SurrogateBank:
        """A bank from scores files with labels, the clean set first."""
        from shiftcal.surrogates.folder import bank_from_files

        return bank_from_files(paths)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> SurrogateBank:
        """A bank from a folder that :meth:`save` wrote."""
        from shiftcal.surrogates.folder import load_bank

        return load_bank(folder)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``bank.json`` and one scores file per set to a new folder, whole or not at all."""
        from shiftcal.surrogates.folder import save_bank

        save_bank(self, folder)

    @property
    def clean(self) -> SurrogateSet:
        """The first set: the calibration samples as they are."""
        return self.sets[0]

    @property
    def n_classes(self) -> int:
        """Number of classes, from the columns."""
        return int(self.clean.logits.shape[1])

    def union(self) -> tuple[Logits, Labels]:
        """Logits and labels of all sets, one below the other."""
        if len(self.sets) == 1:
            return self.clean.logits, self.clean.labels
        logits = np.concatenate([s.logits for s in self.sets])
        return logits, np.concatenate([s.labels for s in self.sets])

    def summaries(self) -> tuple[SetSummary, ...]:
        """Every set in numbers."""
        return tuple(s.summary() for s in self.sets)

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, index: int) -> SurrogateSet:
        return self.sets[index]

    def __iter__(self) -> Iterator[SurrogateSet]:
        return iter(self.sets)

    def __repr__(self) -> str:
        lines = [f"SurrogateBank of {len(self)} sets, {self.n_classes} classes ({self.input})"]
        lines += [
            f"  {j}  {s.name:<28} n = {s.n:<7} mean p_max {s.mean_confidence:.3f}  "
            f"accuracy {s.accuracy:.3f}"
            for j, s in enumerate(self.summaries(), start=1)
        ]
        return "\n".join(lines)


def set_name(position: int, corruption: str | None, severity: int | None) -> str:
    """The name of a set, from what is known of it."""
    if position == 0 and corruption is None:
        return "clean"
    if corruption is None:
        return f"set {position + 1}" if severity is None else f"severity {severity}"
    return corruption if severity is None else f"{corruption}, severity {severity}"


def _logits_per_set(scores: Iterable[object], input: str) -> list[Logits]:
    if isinstance(scores, np.ndarray) and scores.ndim == 2:
        raise InputError(
            "scores must be a sequence of arrays, one per set; got one array of shape "
            f"{scores.shape}. For the clean set alone pass [scores]."
        )
    if isinstance(scores, (str, bytes, dict)) or not isinstance(scores, Iterable):
        raise InputError(
            f"scores must be a sequence of arrays, one per set; got {type(scores).__name__}. "
            "Files make a bank with SurrogateBank.from_files."
        )
    # A bank outlives its making: a buffer that is used again must not change it.
    logits = [np.array(check_scores(array, input=input)) for array in scores]
    if not logits:
        raise InputError(_EMPTY)
    _one_width(logits)
    return logits


def _one_width(logits: Sequence[Logits]) -> int:
    columns = sorted({z.shape[1] for z in logits})
    if len(columns) > 1:
        raise InputError(
            f"all sets of a bank must have the same number of classes; these have {columns}. "
            "They must come from one model."
        )
    return int(columns[0])


def _labels_per_set(
    labels: object, shapes: list[tuple[int, ...]], classes: tuple[str, ...] | None
) -> list[Labels]:
    given = list(labels) if isinstance(labels, (list, tuple)) else [labels]
    if given and np.isscalar(given[0]):  # a plain list of class indices
        given = [labels]
    if len(given) == 1:
        given *= len(shapes)
    if len(given) != len(shapes):
        raise InputError(
            f"labels must be one array for all sets or one per set: {len(shapes)} sets, "
            f"{len(given)} arrays of labels."
        )
    if classes is not None:
        given = [label_indices(to_array(y, name="labels"), classes) for y in given]
    checked = [check_labels(y, n=n, k=k) for y, (n, k) in zip(given, shapes, strict=True)]
    return [np.array(y) for y in checked]
