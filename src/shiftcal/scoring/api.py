"""A model run over images or other inputs: scores in memory or in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import GUARD_FROM, check_choice, check_count, check_logits, check_probs
from shiftcal.corruptions.inputs import count_inputs
from shiftcal.datasets import ImageSet, as_image_set, mix_images
from shiftcal.errors import FileError, InputError
from shiftcal.files import file_to_write
from shiftcal.models import Model, as_model
from shiftcal.models.sklearn import refuse_pairs
from shiftcal.scores import Scores, write_scores
from shiftcal.scores_io import WRITABLE, read_member, suffix_of
from shiftcal.scoring.merge import statistics_of_npz
from shiftcal.scoring.run import (
    Finished,
    Reporting,
    around,
    as_engine,
    cache_folder,
    gathered,
    known_labels,
    left_out,
    make_work,
    none_readable,
    part_of,
    results_of,
    run_job,
    warn_of_bad,
    write_npz,
)
from shiftcal.scoring.statistics import ScoreStatistics, write_statistics
from shiftcal.scoring.store import FolderStore, Notes, workshop
from shiftcal.scoring.work import SHARD_SIZE, Condition, Job, are_named
from shiftcal.types import Floats, InputKind

# --------------------------------------------------------------------------------------
# Scores of images in memory.
# --------------------------------------------------------------------------------------

CLEAN = Condition()


def score(
    model: object,
    images: object,
    labels: object = None,
    *,
    dtype: str = "float32",
    engine: object = None,
    shard_size: int = SHARD_SIZE,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Scores:
    """Scores of images, in memory: ``score(model, images)``.

    Images that cannot be read are left out, with a warning.

    Args:
        model: A model, or what :func:`shiftcal.models.as_model` makes one of.
        images: A set of images, or what :func:`shiftcal.datasets.as_image_set` makes one of:
            an array, a folder, a file, ``"cifar10:folder"``.
        labels: Their labels, if the images do not bring any.
        dtype: ``"float32"``, or ``"float16"`` to halve the size.
        engine: Where the work is done; one worker in this process by default.
        shard_size: Images that are scored, and kept in the cache, together.
        cache: Folder of finished shards, which are not done again; by default that of the
            environment variable ``SHIFTCAL_CACHE``, or none.
        progress: Whether to show a bar; by default on a terminal.

    Raises:
        InputError: If the images, labels or the model cannot be used; the message says what to do.
    """
    folder = cache_folder(cache)
    work = make_work(model, images, labels, dtype=dtype, notes=Notes(cache=folder))
    size = check_count(shard_size, name="shard_size")
    job = Job(work, (CLEAN,), shard_size=size, lasting=folder is not None)
    store = FolderStore(cache=folder)
    done = run_job(job, store, as_engine(engine), Reporting(progress))
    warn_of_bad(job, done.outlines[CLEAN].bad)
    return _scores(job, store, done)


def _scores(job: Job, store: FolderStore, done: Finished) -> Scores:
    rows = done.outlines[CLEAN].rows
    logits, features = gathered(job, CLEAN, store)
    labels = None if done.labels is None else done.labels[rows]
    ids = job.work.images.ids(rows) if are_named(job.work.images) else None
    names = None if ids is None else np.array(ids, np.str_)
    return Scores(logits, "logits", labels, features, names, job.work.model.classes)


# --------------------------------------------------------------------------------------
# Scores of images, or of one part of n of them, in a file.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scored:
    """What came of scoring images.

    Attributes:
        n: Rows of the file.
        k: Number of classes.
        labels: Whether there are labels.
        computed: Images that were scored by this run; the others were there.
        left_out: Images that could not be read: index, id and reason of each.
        key: Digest of everything that decides the scores.
    """

    n: int
    k: int
    labels: bool
    computed: int
    left_out: list[dict[str, Any]]
    key: str


def score_file(
    model: object,
    images: object,
    out: str | os.PathLike[str] | None,
    *,
    labels: object = None,
    part: tuple[int, int] | None = None,
    dtype: str = "float32",
    engine: object = None,
    shard_size: int = SHARD_SIZE,
    cache: str | os.PathLike[str] | None = None,
    statistics: str | os.PathLike[str] | None = None,
    reporting: Reporting | None = None,
) -> Scored:
    """Write the scores of images to a file; called again, it goes on where it stopped.

    What is finished is kept in ``<out>.parts`` until all is. An ``.npz`` file is written a piece at
    a time, in bounded memory, and says how it was made: if it is there already, nothing is done.

    Args:
        model: As for :func:`score`.
        images: As for :func:`score`.
        out: The file, of a kind that :func:`shiftcal.write_scores` writes; ``None`` if only
            statistics are wanted.
        labels: As for :func:`score`.
        part: Which part of how many, counted from 1; ``shiftcal merge`` puts them together.
        dtype: As for :func:`score`.
        engine: As for :func:`score`.
        shard_size: As for :func:`score`.
        cache: As for :func:`score`.
        statistics: File for the statistics of the rows, which can be merged with others.
        reporting: How progress is told.

    Raises:
        InputError: As for :func:`score`.
        FileError: If a file cannot be written; what is done is kept.
    """
    target = None if out is None else file_to_write(out)
    if target is not None:
        suffix_of(target, WRITABLE)
    main = target or file_to_write(statistics or "")
    shared = cache_folder(cache)
    with workshop(main.with_name(f"{main.name}.parts")) as folder:
        model = as_model(model)
        origin = {} if target is None else _origin(target)
        before = _batch_size(origin, model)
        notes = Notes(folder, shared)
        work = make_work(model, images, labels, dtype=dtype, notes=notes, before=before)
        size = check_count(shard_size, name="shard_size")
        job = Job(work, (CLEAN,), shard_size=size, span=_span(len(work.images), part, size))
        scored = _already(origin, job, part)
        if scored is not None:
            if statistics is not None:
                assert target is not None
                rows = statistics_of_npz(target) if scored.n else None
                write_statistics(statistics, rows, part_of(job, part))
            return scored
        store = FolderStore(folder / "shards", cache=shared)
        try:
            done = run_job(job, store, as_engine(engine), reporting or Reporting())
            about = done.outlines[CLEAN]
            if statistics is not None:
                write_statistics(statistics, _statistics(job, store, done), part_of(job, part))
            if target is not None and target.suffix.lower() == ".npz":
                write_npz(target, folder, job, store, done=done, part=part)
            elif target is not None:
                if not about.k:
                    raise none_readable(job, about.bad)
                write_scores(target, _scores(job, store, done))
        finally:
            store.close()
        warn_of_bad(job, about.bad)
        bad, labelled = left_out(job, about.bad), done.labels is not None
        return Scored(about.n, about.k, labelled, done.computed, bad, job.set_key(CLEAN))


def _span(n: int, part: tuple[int, int] | None, shard_size: int) -> tuple[int, int]:
    """First and last image of a part: whole shards, so that batches are the same in every cut."""
    if part is None:
        return 0, n
    of = check_count(part[1], name="the number of parts")
    which = check_count(part[0], name="the part", most=of)
    shards = -(-n // shard_size)
    if of > shards:
        raise InputError(
            f"{n:,} images make {shards} shards of {shard_size:,}, too few for {of} parts. Name "
            f"fewer parts, or a shard size of at most {max(1, n // of)}."
        )
    ends = [min(n, shards * i // of * shard_size) for i in (which - 1, which)]
    return ends[0], ends[1]


def _origin(target: Path) -> dict[str, Any]:
    """How an existing file was made; empty if there is none, or it does not say."""
    if target.suffix.lower() != ".npz" or not target.exists():
        return {}
    try:
        origin = json.loads(str(read_member(target, "origin")))
        return origin if type(origin["model"]["batch_size"]) is int else {}
    except (FileError, ValueError, KeyError, TypeError):
        return {}  # whatever it is, it is replaced


def _batch_size(origin: dict[str, Any], model: Model) -> int | None:
    """That of the file, if it was made with this model."""
    same = origin and origin["model"].get("fingerprint") == model.fingerprint
    return origin["model"]["batch_size"] if same else None


def _already(origin: dict[str, Any], job: Job, part: tuple[int, int] | None) -> Scored | None:
    """What is in the file, if it was made by this very job."""
    try:
        key, k = origin["key"], origin["k"]
        if key != job.set_key(CLEAN):
            return None
        labels = known_labels(job, k)
        if origin["around"] != around(job, labels, part):
            return None
        return Scored(origin["n"], k, labels is not None, 0, origin["left_out"], key)
    except (KeyError, TypeError):
        return None


def _statistics(job: Job, store: FolderStore, done: Finished) -> ScoreStatistics | None:
    """Of all rows, one shard at a time; ``None`` if there is no row."""
    if not done.outlines[CLEAN].n:
        return None
    labels = done.labels
    return ScoreStatistics.merged(
        ScoreStatistics.of(
            Scores(
                result.logits,
                labels=None if labels is None else labels[result.rows],
                classes=job.work.model.classes,
            )
        )
        for result in results_of(job, CLEAN, store)
        if len(result.rows)
    )


# --------------------------------------------------------------------------------------
# A model run over inputs of any kind, all at once.
# --------------------------------------------------------------------------------------

# What a classifier gives as which kind; what its users look at comes first.
_GIVES = {"probabilities": "predict_proba", "logits": "decision_function"}


def score_inputs(
    model: Any,
    inputs: Any,
    *,
    input: str | None = None,
    classes: Sequence[str] | None = None,
) -> Scores:
    """What a model gives for rows, texts or whatever it takes.

    Args:
        model: A fitted scikit-learn classifier or pipeline, or a function from inputs to logits or
            probabilities ``(n, k)``.
        inputs: An array, a DataFrame, a list of texts, or whatever the model takes. It is called
            once with all of them.
        input: What the model gives: ``"logits"`` or ``"probabilities"``. By default a function
            gives logits; a classifier its ``predict_proba``, or ``decision_function`` if it has no
            other. ``"logits"`` is a classifier's ``decision_function``, of which one column ``s``
            becomes ``[0, s]``.
        classes: Names of the classes in the order of the columns; by default the classifier's own.

    Returns:
        Scores of that kind, checked: finite, a row for every input.

    Raises:
        InputError: If the model fails, or gives something else.
    """
    return ModelOfInputs(model, input=input, classes=classes).scores(inputs, where="the inputs")


class ModelOfInputs:
    """Whatever turns inputs into scores.

    Args:
        model: As for :func:`score_inputs`.
        input: As for :func:`score_inputs`.
        classes: As for :func:`score_inputs`.

    Attributes:
        input: What it gives.
        classes: Names of the classes, if they are known.
        labels: What the classifier calls its classes; ``None`` for a function.
    """

    def __init__(self, model: Any, *, input: str | None, classes: Sequence[str] | None) -> None:
        if input is not None:
            check_choice(input, tuple(_GIVES), name="input")
        self.labels = _labels_of(model)
        if self.labels is None:
            self._call, kind = model, input or "logits"
        else:
            self._call, kind = _method_of(model, input)
            classes = [str(each) for each in self.labels] if classes is None else classes
        self.input: InputKind = "logits" if kind == "logits" else "probabilities"
        self.classes = classes

    def scores(self, inputs: Any, *, where: str, hint: str = "") -> Scores:
        """Checked scores.

        Args:
            inputs: As for :func:`score_inputs`.
            where: What the inputs are, for messages.
            hint: What to do if the model fails on them.
        """
        n = count_inputs(inputs)
        try:
            given = self._call(inputs)
        except Exception as error:  # a model of the user's own raises what it likes
            raise InputError(
                f"the model failed on {where}: {type(error).__name__}: {error}{hint}"
            ) from error
        try:
            values = self._checked(given)
        except InputError as error:
            raise InputError(f"the model's output for {where} cannot be used: {error}") from error
        if len(values) != n:
            raise InputError(
                f"the model's output for {where} must have a row for each of {n} inputs; got "
                f"{len(values)} rows."
            )
        names = None if self.classes is None else tuple(self.classes)
        return Scores(values, self.input, classes=names)

    def _checked(self, given: Any) -> Floats:
        if self.input == "probabilities":
            return check_probs(given)
        if self.labels is not None and np.ndim(given) == 1:
            given = np.column_stack([np.zeros_like(given), given])
        return np.array(check_logits(given, guard_from=GUARD_FROM))  # a buffer may be used again


def _labels_of(model: Any) -> Any:
    """The classes of a fitted classifier; ``None`` of a function."""
    if isinstance(model, Model):
        raise InputError(
            f"model must be a classifier or a function of inputs; {type(model).__name__} is a model"
            " of images. SurrogateBank.synthesize and shiftcal.score take it."
        )
    if any(hasattr(model, name) for name in ("fit", "predict")):
        found = getattr(model, "classes_", None)
        if found is None:
            raise InputError(
                f"model must be a fitted classifier; {type(model).__name__} has no classes_. Fit "
                "it first, or pass a function."
            )
        if isinstance(found, list):
            raise InputError(
                f"model must have one output; {type(model).__name__} has {len(found)}. Pass a "
                "function that gives the probabilities of one of them."
            )
        return np.asarray(found)
    if isinstance(model, type) or not callable(model):
        raise InputError(
            "model must be a fitted scikit-learn classifier, or a function from inputs to logits; "
            f"got {model!r}."
        )
    return None


def _method_of(model: Any, input: str | None) -> tuple[Any, str]:
    for kind, name in _GIVES.items():
        if input in (None, kind) and hasattr(model, name):
            if name == "decision_function":
                refuse_pairs(model)
            return getattr(model, name), kind
    wanted = " or ".join(_GIVES.values()) if input is None else _GIVES[input]
    raise InputError(
        f"model must have {wanted}; {type(model).__name__} has not. CalibratedClassifierCV around "
        "it gives probabilities."
    )


# --------------------------------------------------------------------------------------
# Scores of mixed images, for PseudoCal.
# --------------------------------------------------------------------------------------


def score_mixed(
    model: object,
    images: object,
    scores: Scores | None = None,
    *,
    ratio: float = 0.65,
    seed: int = 0,
    **options: Any,
) -> Scores:
    """Scores of mixtures of unlabelled images, labelled by the model's own predictions.

    What :class:`~shiftcal.methods.pseudocal.PseudoCal` adapts to:
    ``method.adapt(scores, mixed=score_mixed(model, images, scores))``. The model runs over the
    images as they are, unless their scores are given, and then over those mixtures of two of them
    that :func:`shiftcal.datasets.mix_images` makes. Labels of the images are not looked at.

    Args:
        model: A model, or what :func:`shiftcal.models.as_model` makes one of.
        images: The target: a set of images, or what :func:`shiftcal.datasets.as_image_set` makes
            one of.
        scores: What the model gave for them, to save that pass. If some could not be read and are
            not in it, the others are known by their ids.
        ratio: How much of the first image there is in a mixture, above 0.5 and below 1.
        seed: Of the permutation that says who is mixed with whom.
        **options: ``dtype``, ``engine``, ``shard_size``, ``cache`` and ``progress``, as for
            :func:`score`.

    Returns:
        The scores of the mixtures, a row for every pair that is predicted to be of two classes;
        ``labels`` are the predictions for the first image of each.

    Raises:
        InputError: As for :func:`score`; and if scores and images do not fit, or all images are
            predicted to be of one class.
    """
    made = as_model(model)
    target = as_image_set(images).relabelled(None)
    known = score(made, target, **options) if scores is None else _checked(scores)
    if known.n != len(target):
        target = target.subset(_rows(known, target), name=target.name)
    mixtures = mix_images(target, known.values, ratio=ratio, seed=seed)
    return score(made, mixtures, **options)


def _checked(scores: object) -> Scores:
    if isinstance(scores, Scores):
        return scores
    raise InputError(
        f"scores must be Scores of the images, as shiftcal.score gives them; got "
        f"{type(scores).__name__}. Leave them out to have the images scored."
    )


def _rows(scores: Scores, images: ImageSet) -> NDArray[np.intp]:
    """Which images scores are of that are not of all of them."""
    if scores.ids is not None:
        where = {name: row for row, name in enumerate(images.ids(np.arange(len(images))))}
        rows = [where.get(str(name), -1) for name in scores.ids]
        if len(where) == len(images) and min(rows) >= 0:
            return np.array(rows, np.intp)
    raise InputError(
        f"scores must be of the images of {images.name}, in their order: {len(images):,} images, "
        f"{scores.n:,} rows{'' if scores.ids is None else ' of other ids'}. Leave images that "
        "cannot be read out of the set (images.subset), and score it again."
    )
