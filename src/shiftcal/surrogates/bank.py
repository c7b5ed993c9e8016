"""The surrogate bank: labelled sets of logits in order, the first the clean one; and its folder."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
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
from shiftcal.errors import FileError, InputError, MissingData
from shiftcal.files import (
    flush_folder,
    naming,
    parsing,
    read_document,
    sha256_of,
    write_document,
)
from shiftcal.numerics.softmax import p_max
from shiftcal.scores import Scores, read_scores, write_scores
from shiftcal.types import Floats, InputKind, Labels, Logits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shiftcal.scoring.engines import Engine

FORMAT, VERSION = "shiftcal-bank", 2
# In the folder of a bank: finished shards of sets that are not.
WORK = ".work"
_KIND, _FIX = "the description of a bank", "Make the bank again, in a new folder."
_NO_MISSING = (
    " The corruption leaves missing values: put an imputer in front of the model, or pass "
    'MissingValues(fill="median").'
)


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
        self._check_severity()

    def _check_severity(self) -> None:
        if self.severity is not None:
            whose = f"severity of set {self.name!r}"
            object.__setattr__(self, "severity", check_count(self.severity, name=whose, least=0))

    @classmethod
    def _of_checked(cls, *values: Any) -> SurrogateSet:
        """A set of arrays that were checked already; all attributes in their order."""
        made = object.__new__(cls)
        made.__dict__.update(zip((one.name for one in fields(cls)), values, strict=True))
        made._check_severity()
        return made

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


def _one_width(logits: Sequence[Logits]) -> int:
    """The number of classes that all sets have."""
    if not logits:
        raise InputError("a surrogate bank needs at least one set: the clean calibration set.")
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
    checked: dict[tuple[int, int], Labels] = {}  # one array may serve several sets
    for y, (n, k) in zip(given, shapes, strict=True):
        if (id(y), n) not in checked:
            indices = y
            if classes is not None:
                indices = label_indices(to_array(y, name="labels"), classes)
            checked[id(y), n] = np.array(check_labels(indices, n=n, k=k))
    return [checked[id(y), n] for y, (n, _) in zip(given, shapes, strict=True)]


class SurrogateBank:
    """J labelled sets of logits in order of rising difficulty, the first the clean one.

    Build one from a model and images with :meth:`synthesize`, from a model and rows, texts or other
    inputs with :meth:`from_inputs`, from logits with :meth:`from_arrays` or :meth:`from_files`, or
    read a folder with :meth:`load`.

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
        k = _one_width([s.logits for s in sets])
        for j, one in enumerate(sets):
            if one.severity is not None and (one.severity == 0) != (j == 0):
                raise InputError(
                    "severity must be 0 for the first set, the clean one, and 1 or more for the "
                    f"others (None if not known); set {j + 1} ({one.name!r}) has {one.severity}."
                )
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
        """A bank from a model and labelled images, clean and corrupted.

        The next images are corrupted while the model runs. With ``out``, the same call resumes
        after an interruption.

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
                what methods need of a bank, ``"all"``, where corrupted sets are targets of
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
        from shiftcal.progress import Reporting
        from shiftcal.surrogates.build import build_bank, conditions_of, synthesize_in_memory

        conditions = conditions_of(corruption, severities)
        options: dict[str, Any] = {
            "seed": seed,
            "table": table,
            "dtype": dtype,
            "features": features,
            "engine": engine,
            "cache": cache,
            "reporting": Reporting(progress),
        }
        if out is None:
            return synthesize_in_memory(model, images, labels, conditions, **options)
        build_bank(
            model, images, out, labels=labels, conditions=conditions, relabel=relabel, **options
        )
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
        """A bank from a model and labelled rows, texts or other inputs.

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
        from shiftcal.corruptions import InputCorruption, as_input_corruption, corrupt_inputs
        from shiftcal.corruptions.inputs import count_inputs
        from shiftcal.scoring.api import labels_of, score_inputs
        from shiftcal.surrogates.build import class_indices, corruptions_of, steps_of

        count_inputs(inputs)
        made = corruptions_of(corruption, (str, InputCorruption, type), as_input_corruption)
        ladders = [each.fitted_to(inputs) for each in made]
        key = check_count(seed, name="seed", least=0, most=2**128)

        def scores(each: InputCorruption, level: int, name: str) -> Scores:
            # Severity 0 is a copy: a model may change what it is given.
            given = corrupt_inputs(inputs, each, severity=level, seed=key)
            try:
                return score_inputs(model, given, input=input, classes=classes)
            except InputError as error:
                hint = _NO_MISSING if level and each.may_lose_values else ""
                raise type(error)(f"the set {name!r}: {error}{hint}") from error

        steps = steps_of(ladders, severities)
        clean, own = scores(ladders[0], 0, "clean"), labels_of(model)
        indices = labels if own is None else class_indices(labels, own)
        (checked,) = labels_per_set(indices, [clean.values.shape], clean.classes)
        copied = _copied_features(features, n=clean.n)
        sets = [SurrogateSet._of_checked(clean.logits(), checked, "clean", None, 0, copied)]
        for each, level in steps:
            name = set_name(level, each.name, level)
            logits = scores(each, level, name).logits()
            sets.append(SurrogateSet._of_checked(logits, checked, name, each.name, level, None))
        origin = {"corruptions": [each.description for each in ladders], "seed": key}
        return cls(sets, classes=clean.classes, input=clean.input, origin=origin)

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
        if isinstance(scores, (str, bytes, dict)) or getattr(scores, "ndim", None) == 2:
            raise InputError(
                f"scores must be a sequence of arrays, one per set; got {type(scores).__name__}. "
                "For the clean set alone pass [scores]; files make a bank with from_files."
            )
        # A buffer that is used again must not change the bank: arrays are copied.
        logits = [
            np.array(
                array.as_kind(cast(InputKind, input)).logits()
                if isinstance(array, Scores)
                else check_scores(array, input=input)
            )
            for array in scores
        ]
        _one_width(logits)
        names = None if classes is None else check_classes(classes, k=logits[0].shape[1])
        per_set = labels_per_set(labels, [z.shape for z in logits], names)
        copied = _copied_features(features, n=len(logits[0]))
        unknown = [None] * (len(logits) - 1) if corruption is None else range(1, len(logits))
        levels = [0, *(unknown if severities is None else severities)]
        if len(levels) != len(logits):
            raise InputError(
                f"severities must name every set but the clean one: {len(logits) - 1} sets, "
                f"{len(levels) - 1} severities."
            )
        sets = []
        for j, (z, y, level) in enumerate(zip(logits, per_set, levels, strict=True)):
            made_by, own = (corruption, None) if j else (None, copied)
            name = set_name(j, made_by, level)
            sets.append(SurrogateSet._of_checked(z, y, name, made_by, level, own))
        return cls(sets, classes=names, input=input)

    @classmethod
    def from_files(
        cls, paths: Sequence[str | os.PathLike[str]], *, normalize: bool = False, **columns: Any
    ) -> SurrogateBank:
        """A bank from scores files with labels, the clean set first.

        Args:
            paths: The files.
            normalize: As for :func:`shiftcal.read_scores`.
            **columns: Names of columns of tables, likewise.
        """
        if isinstance(paths, (str, os.PathLike)) or not paths:
            raise InputError(f"paths must be a list, for one file pass [path]; got {paths!r}.")
        files = [Path(path) for path in paths]
        scores = [read_scores(file, normalize=normalize, **columns) for file in files]
        for file, other in zip(files[1:], scores[1:], strict=True):
            named = None not in (scores[0].classes, other.classes)
            if other.input != scores[0].input or (named and other.classes != scores[0].classes):
                raise InputError(
                    "the sets of a bank must be of one kind, with the same classes in the same "
                    f"order; {file} ({other.input}) differs from {files[0]} ({scores[0].input})."
                )
        sets = [
            _stored_set(file, one, file.stem, None, None if j else 0)
            for j, (file, one) in enumerate(zip(files, scores, strict=True))
        ]
        return cls(sets, classes=scores[0].classes, input=scores[0].input)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, normalize: bool = False) -> SurrogateBank:
        """A bank from a folder that :meth:`save` or ``shiftcal bank`` wrote.

        Args:
            folder: The folder.
            normalize: As for :func:`shiftcal.read_scores`.

        Raises:
            FileError: If a file is missing, damaged or from another version.
        """
        source = Path(folder)
        description = read_description(source)
        with parsing(source / "bank.json", _KIND, fix=_FIX):
            sets = []
            for entry in description["sets"]:
                file = source / entry["file"]
                scores = read_scores(file, normalize=normalize)
                if entry["sha256"] != sha256_of(file):
                    raise FileError(f"{file} is damaged or was replaced: its checksum differs.")
                known = (entry[name] for name in ("name", "corruption", "severity"))
                sets.append(_stored_set(file, scores, *known))
            about = {name: description[name] for name in ("classes", "input", "origin")}
            return cls(sets, **about)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``bank.json`` and one scores file per set to a new folder, whole or not at all.

        Raises:
            FileError: If the folder exists and holds something, or cannot be written.
        """
        target = Path(folder)
        if not target.name or (target.exists() and (target.is_file() or any(target.iterdir()))):
            raise FileError(f"{target} exists already. Name a new folder for the bank.")
        temporary = target.with_name(f".shiftcal-{secrets.token_hex(6)}.tmp")
        try:
            temporary.mkdir()
            entries = []
            for j, one in enumerate(self.sets):
                file = temporary / f"set-{j:02d}.npz"
                scores = Scores(one.logits, labels=one.labels, features=one.features)
                write_scores(file, scores)
                entries.append(entry_of(file, one.name, one.corruption, one.severity))
            described = {"input": self.input, "classes": self.classes, "origin": self.origin}
            write_description(temporary, {**described, "sets": entries})
            if target.exists():
                target.rmdir()
            temporary.replace(target)
        except OSError as error:
            raise FileError(f"{target} could not be written: {error.strerror or error}.") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        flush_folder(target.parent)

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
        digits = len(str(len(self)))
        lines = [
            f"  {j:>{digits}}  {s.name:<28} n = {s.n:<7} mean p_max {s.mean_confidence:.3f}  "
            f"accuracy {s.accuracy:.3f}"
            for j, s in enumerate(self.summaries(), start=1)
        ]
        title = f"SurrogateBank of {len(self)} sets, {self.n_classes} classes ({self.input})"
        return "\n".join([title, *lines])


def set_name(position: int, corruption: str | None, severity: int | None) -> str:
    """The name of a set, from what is known of it."""
    if position == 0 and corruption is None:
        return "clean"
    if corruption is None:
        return f"set {position + 1}" if severity is None else f"severity {severity}"
    return corruption if severity is None else f"{corruption}, severity {severity}"


def read_description(folder: Path) -> dict[str, Any]:
    """The content of ``bank.json`` in a folder.

    Raises:
        FileError: If it cannot be read, or is of another kind or version.
    """
    file = folder / "bank.json"
    try:
        return read_document(file, _KIND, format=FORMAT, version=VERSION, fix=_FIX)
    except MissingData as error:
        wrong = f"{folder} is not a bank folder: there is no {file}."
        if (folder / WORK).is_dir():
            wrong = f"{folder} holds a bank that is not finished. The same command resumes it."
        raise FileError(wrong) from error


def entry_of(file: Path, name: str, corruption: str | None, severity: int | None) -> dict[str, Any]:
    """What ``bank.json`` says of a set."""
    about = {"file": file.name, "name": name, "corruption": corruption, "severity": severity}
    return {**about, "sha256": sha256_of(file)}


def write_description(folder: Path, content: Mapping[str, Any]) -> None:
    """Write ``bank.json``, with a checksum of its content."""
    kept = {name: content[name] for name in ("input", "classes", "origin", "sets")}
    write_document(folder / "bank.json", kept, format=FORMAT, version=VERSION, indent=1)


def _stored_set(
    file: Path, scores: Scores, name: str, corruption: str | None, severity: int | None
) -> SurrogateSet:
    if scores.labels is None:
        raise InputError(
            f"{file} has no labels, and a surrogate set needs those of the calibration samples."
        )
    logits = scores.logits()  # its errors name the file
    with naming(file):
        features = scores.features
        if features is not None:
            features = check_features(features, name="features", n=scores.n)
        return SurrogateSet._of_checked(logits, scores.labels, name, corruption, severity, features)


def _copied_features(features: object, *, n: int) -> Floats | None:
    return None if features is None else np.array(check_features(features, name="features", n=n))
