"""The surrogate bank: labelled sets of logits in order, the first the clean one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from shiftcal.checks import (
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
from shiftcal.errors import InputError
from shiftcal.markup import piece, table
from shiftcal.numerics.softmax import p_max
from shiftcal.types import Floats, InputKind, Labels, Logits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shiftcal.scoring.engines import Engine

# --------------------------------------------------------------------------------------
# Scores and labels of every set of a bank, as they were given: checked and copied.
# --------------------------------------------------------------------------------------

EMPTY = "a surrogate bank needs at least one set: the clean calibration set."


def logits_per_set(scores: Iterable[object], input: str) -> list[Logits]:
    """Logits of every set, copied, all with one number of classes."""
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
        raise InputError(EMPTY)
    one_width(logits)
    return logits


def one_width(logits: Sequence[Logits]) -> int:
    """The number of classes that all sets have."""
    columns = sorted({z.shape[1] for z in logits})
    if len(columns) > 1:
        raise InputError(
            f"all sets of a bank must have the same number of classes; these have {columns}. "
            "They must come from one model."
        )
    return int(columns[0])


def labels_per_set(
    labels: object, shapes: list[tuple[int, ...]], classes: tuple[str, ...] | None
) -> list[Labels]:
    """Labels of every set: one array that serves all, or one for each.

    Args:
        labels: Class indices, or names if ``classes`` are given.
        shapes: Of the logits of every set.
        classes: Names of the classes in the order of the columns.
    """
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


# --------------------------------------------------------------------------------------
# What a method keeps of a surrogate set once it is fitted: a few numbers, no rows.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SetSummary:
    """A surrogate set in numbers.

    Attributes:
        name: What it is called in tables and messages.
        corruption: The corruption that made it, if known; ``None`` for the clean set.
        severity: Its strength, 0 for the clean set; ``None`` if not known.
        n: Rows.
        mean_confidence: Mean of the raw p_max.
        sd_confidence: Standard deviation of the raw p_max.
        accuracy: Share of rows whose largest logit is the label's.
    """

    name: str
    corruption: str | None
    severity: int | None
    n: int
    mean_confidence: float
    sd_confidence: float
    accuracy: float

    def __post_init__(self) -> None:
        shares = (self.mean_confidence, self.accuracy)
        # A mean of ones may be above one by rounding.
        if not (all(0 <= x <= 1 + 1e-9 for x in shares) and self.n > 0 <= self.sd_confidence <= 1):
            raise InputError(f"the summary of set {self.name!r} is of no rows: {self}")

    @property
    def standard_error(self) -> float:
        """Standard error of ``mean_confidence``."""
        return self.sd_confidence / float(self.n) ** 0.5


# --------------------------------------------------------------------------------------
# One set of a bank: labelled logits of the calibration samples under one corruption.
# --------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------
# How a bank shows itself: lines of text, or a table in a notebook.
# --------------------------------------------------------------------------------------

# Sets that are shown where nobody asked for all of them.
MOST = 24
_HEAD = ("set", "name", "rows", "mean confidence", "accuracy", "gap")


def bank_text(title: str, sets: Sequence[SurrogateSet], *, most: int | None = None) -> str:
    """A line for every set, or for the first ``most`` of them.

    Only the sets that are shown are computed.
    """
    shown = list(islice(_summaries(sets), most))
    digits = len(str(len(shown)))
    lines = [
        f"  {j:>{digits}}  {s.name:<28} n = {s.n:<7} mean p_max {s.mean_confidence:.3f}  "
        f"accuracy {s.accuracy:.3f}"
        for j, s in enumerate(shown, start=1)
    ]
    if len(shown) < len(sets):
        lines.append(f"  ... {len(sets) - len(shown)} more; print shows all of them")
    return "\n".join([title, *lines])


def bank_html(title: str, sets: Sequence[SurrogateSet]) -> str:
    """A table of the first sets, with how sure and how right the model is on each."""
    rows = (
        (
            j,
            s.name,
            f"{s.n:,}",
            f"{s.mean_confidence:.3f}",
            f"{s.accuracy:.3f}",
            f"{s.mean_confidence - s.accuracy:+.3f}",
        )
        for j, s in enumerate(_summaries(sets), start=1)
    )
    return piece(title, table(_HEAD, rows, total=len(sets), most=MOST, words=2))


def _summaries(sets: Sequence[SurrogateSet]) -> Iterator[SetSummary]:
    return (one.summary() for one in sets)


# --------------------------------------------------------------------------------------
# How strong the corruption of each set is: 0 for the clean one, which is first, then 1 and up.
# --------------------------------------------------------------------------------------


def severities_of(
    n_sets: int, corruption: str | None, severities: Sequence[int] | None
) -> list[int | None]:
    """One severity per set, from what was said of all but the clean one.

    Args:
        n_sets: Number of sets, with the clean one.
        corruption: The name of the corruption, if there is one: its steps are then 1, 2, ...
        severities: Those of the other sets, if they were given.

    Raises:
        InputError: If there are more or fewer severities than sets.
    """
    if severities is None:
        if corruption is None:
            return [0, *[None] * (n_sets - 1)]
        return list(range(n_sets))
    if len(severities) != n_sets - 1:
        raise InputError(
            f"severities must name every set but the clean one: {n_sets - 1} sets, "
            f"{len(severities)} severities."
        )
    return [0, *severities]


def refuse_misplaced(names: Sequence[str], severities: Sequence[int | None]) -> None:
    """Raise unless severity 0 is that of the first set and of no other, as far as they are known.

    Args:
        names: What the sets are called.
        severities: Theirs, in the same order.

    Raises:
        InputError: Naming the set that is out of place.
    """
    if severities[0]:
        raise InputError(
            f"severity of the first set must be 0, since it is the clean one; {names[0]!r} has "
            f"{severities[0]}. Put the calibration samples as they are first."
        )
    if 0 in severities[1:]:
        position = severities.index(0, 1)
        raise InputError(
            "severity must be 1 or more for every set after the first, which is the clean one; "
            f"set {position + 1} ({names[position]!r}) has 0. Leave a second clean set out, or "
            "say None if the severity is not known."
        )


# --------------------------------------------------------------------------------------
# The surrogate bank: J labelled sets of logits in order, the first the clean calibration set.
# --------------------------------------------------------------------------------------


class SurrogateBank:
    """J labelled sets of logits in order of rising difficulty, the first the clean one.

    Make one of a model and images with :meth:`synthesize`, of a model and rows, texts or anything
    else with :meth:`from_inputs`, of logits with :meth:`from_arrays` or :meth:`from_files`, or read
    a folder with :meth:`load`.

    Args:
        sets: The sets, all with the same number of classes; the severity of the first is 0, that of
            the others 1 or more, where they are known.
        classes: Names of the classes in the order of the columns.
        input: What the model gave: ``"logits"`` or ``"probabilities"``. The sets hold logits
            either way; methods must be made with the same ``input``.
        origin: How it was made: model, preprocessing, images, seed; kept with it on disk. ``None``
            if that is not known.
    """

    def __init__(
        self,
        sets: Sequence[SurrogateSet],
        *,
        classes: Sequence[str] | None = None,
        input: str = "logits",
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        if not sets:
            raise InputError(EMPTY)
        k = one_width([s.logits for s in sets])
        refuse_misplaced([s.name for s in sets], [s.severity for s in sets])
        self.sets = tuple(sets)
        self.classes = None if classes is None else check_classes(classes, k=k)
        self.input = cast(InputKind, check_choice(input, ("logits", "probabilities"), name="input"))
        self.origin = None if origin is None else dict(origin)

    @classmethod
    def synthesize(
        cls,
        model: object,
        images: object,
        labels: object = None,
        *,
        corruption: object = "pixelate",
        severities: Sequence[int] | int | None = None,
        out: str | os.PathLike[str] | None = None,
        seed: int = 0,
        table: str = "auto",
        dtype: str = "float32",
        features: str = "clean",
        relabel: bool = False,
        engine: Engine | None = None,
        cache: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> SurrogateBank:
        """A bank made from a model and labelled images: the images as they are, and corrupted.

        The next images are corrupted while the model runs, and work that was done is not done
        again: with ``out``, a call that was broken off goes on where it stopped.

        Args:
            model: A model, or what :func:`shiftcal.models.as_model` makes one of.
            images: A set of images, or what :func:`shiftcal.datasets.as_image_set` makes one of:
                an array, a folder of class folders, ``"cifar10:folder"``.
            labels: Class indices ``(n,)``, or a file of them; where the images bring their own
                they can be left out.
            corruption: A name, several in a list, or whatever :func:`shiftcal.corrupt` takes.
            severities: Which ones; all by default, which are 1 to 5.
            out: Folder for the bank, as :meth:`save` writes it, but in bounded memory. A bank that
                is there, of the same model and images, gets the sets it lacks.
            seed: Fixes the random numbers of the corruptions.
            table: Whose strengths, as for :func:`shiftcal.corrupt`.
            dtype: What logits are stored as: ``"float32"``, or ``"float16"`` to halve the size.
            features: Which sets keep the features of a model that gives them: ``"clean"``, which is
                what methods need of a bank, ``"all"``, where corrupted sets shall be targets of
                CPCS and TransCal, or ``"none"``.
            relabel: Put other labels or classes for the same images into the bank in ``out``;
                nothing is scored again.
            engine: Where the work is done; one worker in this process by default.
            cache: Folder of finished shards, to be shared between banks; by default that of the
                environment variable ``SHIFTCAL_CACHE``, or none.
            progress: Whether to show a bar; by default on a terminal.

        Raises:
            InputError: If something given cannot be used, or the model fails on a batch, which the
                message names; what was done until then is kept.
            FileError: If the folder cannot be written, or holds something else.
        """
        from shiftcal.scoring.run import Reporting
        from shiftcal.surrogates.build import (
            Options,
            build_bank,
            conditions_of,
            synthesize_in_memory,
        )

        conditions = conditions_of(corruption, severities)
        told = Reporting(progress)
        options = Options(
            seed,
            table,
            dtype,
            engine,
            cache=cache,
            features=features,
            relabel=relabel,
            reporting=told,
        )
        if out is None:
            return synthesize_in_memory(model, images, labels, conditions, options=options)
        build_bank(model, images, out, labels=labels, conditions=conditions, options=options)
        return cls.load(out)

    @classmethod
    def from_inputs(
        cls,
        model: object,
        inputs: object,
        labels: object,
        *,
        corruption: object,
        severities: Sequence[int] | int | None = None,
        seed: int = 0,
        features: object = None,
        classes: Sequence[str] | None = None,
        input: str | None = None,
    ) -> SurrogateBank:
        """A bank made from a model and labelled rows, texts or anything else it takes.

        Args:
            model: A fitted scikit-learn classifier or pipeline, or a function from inputs to
                logits or probabilities ``(n, k)``; called with all inputs at once.
            inputs: An array or a DataFrame of rows, a list of texts, or whatever the model takes.
            labels: ``(n,)``: what the classifier calls its classes; for a function class indices,
                or names if ``classes`` are given.
            corruption: A name (``corruptions.tabular.names()``, ``corruptions.text.names()``),
                several in a list, or whatever :func:`shiftcal.corruptions.corrupt_inputs` takes.
                What has to be fitted to reference rows and is not is fitted to ``inputs``.
            severities: Which ones; all by default.
            seed: Fixes the random numbers of the corruptions.
            features: ``(n, d)`` of the inputs as they are, for CPCS and TransCal.
            classes: Names of the classes in the order of the columns; a classifier has its own.
            input: What the model gives, ``"logits"`` or ``"probabilities"``, as for
                :func:`shiftcal.scoring.score_inputs`. Methods must be made with the same:
                ``SAC(input=bank.input)``.

        Raises:
            InputError: If something given cannot be used, a corruption does not return as many
                inputs, or the model fails; the message says on which set.
        """
        from shiftcal.surrogates.build import OfInputs, bank_of_inputs

        given = OfInputs(model, inputs, labels, features=features, classes=classes, input=input)
        return bank_of_inputs(given, corruption, severities, seed=seed)

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
        logits = logits_per_set(scores, input)
        names = None if classes is None else check_classes(classes, k=logits[0].shape[1])
        per_set = labels_per_set(labels, [z.shape for z in logits], names)
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
    def from_files(
        cls, paths: Sequence[str | os.PathLike[str]], *, normalize: bool = False
    ) -> SurrogateBank:
        """A bank from scores files with labels, the clean set first.

        Args:
            paths: The files.
            normalize: As for :func:`shiftcal.read_scores`.
        """
        from shiftcal.surrogates.folder import bank_from_files

        return bank_from_files(paths, normalize=normalize)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, normalize: bool = False) -> SurrogateBank:
        """A bank from a folder that :meth:`save` wrote, or one made by hand in its form.

        Args:
            folder: The folder.
            normalize: As for :func:`shiftcal.read_scores`.
        """
        from shiftcal.surrogates.folder import load_bank

        return load_bank(folder, normalize=normalize)

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

    def __str__(self) -> str:
        return bank_text(self._title(), self.sets)

    def __repr__(self) -> str:
        return bank_text(self._title(), self.sets, most=MOST)

    def _repr_html_(self) -> str:
        return bank_html(self._title(), self.sets)

    def _title(self) -> str:
        return f"SurrogateBank of {len(self)} sets, {self.n_classes} classes ({self.input})"


def set_name(position: int, corruption: str | None, severity: int | None) -> str:
    """The name of a set, from what is known of it."""
    if position == 0 and corruption is None:
        return "clean"
    if corruption is None:
        return f"set {position + 1}" if severity is None else f"severity {severity}"
    return corruption if severity is None else f"{corruption}, severity {severity}"
