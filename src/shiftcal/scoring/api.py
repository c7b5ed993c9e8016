"""A model run over images or other inputs: scores in memory or in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice, check_logits, check_probs
from shiftcal.corruptions.inputs import count_inputs
from shiftcal.datasets import ImageSet, as_image_set, mix_images
from shiftcal.errors import FileError, InputError
from shiftcal.files import (
    NpzStream,
    checksum_of,
    file_to_write,
    flush_file,
    flush_folder,
    put_in_place,
    read_npz,
)
from shiftcal.models import Model, as_model
from shiftcal.progress import Reporting
from shiftcal.scores import Scores, write_scores
from shiftcal.scores_io import WRITABLE, suffix_of
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.shards import (
    BLOCK,
    CLEAN,
    SHARD_SIZE,
    Finished,
    Job,
    ShardStore,
    are_named,
    cache_folder,
    digest_of_labels,
    gathered,
    left_out,
    make_job,
    model_labels,
    names_of,
    none_readable,
    results_of,
    run_job,
    text_of,
    unfinished_work,
    warn_of_bad,
    write_set,
)
from shiftcal.scoring.statistics import (
    Part,
    ScoreStatistics,
    statistics_of_npz,
    write_statistics,
)
from shiftcal.types import Floats, InputKind, Labels

# Images whose content is compared between parts of a job.
_SAMPLE = 64


def score(
    model: object,
    images: object,
    labels: object = None,
    *,
    dtype: str = "float32",
    engine: Engine | None = None,
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
        labels: Their labels, if the images have none.
        dtype: ``"float32"``, or ``"float16"`` to halve the size.
        engine: Where the work is done; default: one worker in this process.
        shard_size: Images that are scored, and kept in the cache, together.
        cache: Folder of finished shards, which are not scored again; default: that of the
            environment variable ``SHIFTCAL_CACHE``, or none.
        progress: Whether to show a bar; default: on a terminal.

    Raises:
        InputError: If the images, labels or the model cannot be used; the message says what to do.
    """
    folder = cache_folder(cache)
    lasting = folder is not None
    job = make_job(model, images, labels, dtype=dtype, shard_size=shard_size, lasting=lasting)
    store = ShardStore(cache=folder)
    done = run_job(job, store, engine, Reporting(progress))
    warn_of_bad(job, done.outlines[CLEAN].bad)
    return _scores(job, store, done)


def _scores(job: Job, store: ShardStore, done: Finished) -> Scores:
    rows = done.outlines[CLEAN].rows()
    logits, features = gathered(job, CLEAN, store)
    labels = None if done.labels is None else done.labels[rows]
    names = names_of(job.images, rows)
    return Scores(logits, "logits", labels, features, names, job.model.classes)


@dataclass(frozen=True)
class Scored:
    """What :func:`score_file` did.

    Attributes:
        n: Rows of the file.
        k: Number of classes.
        labels: Whether there are labels.
        computed: Images that this run scored.
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
    engine: Engine | None = None,
    shard_size: int = SHARD_SIZE,
    cache: str | os.PathLike[str] | None = None,
    statistics: str | os.PathLike[str] | None = None,
    reporting: Reporting | None = None,
) -> Scored:
    """Write the scores of images to a file; called again, it resumes.

    Finished shards are kept in ``<out>.parts`` until the file is written. An ``.npz`` file is
    written a piece at a time, in bounded memory, and says how it was made: a finished one is not
    made again.

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
        reporting: How progress is reported.

    Raises:
        InputError: As for :func:`score`.
        FileError: If a file cannot be written; finished shards are kept.
    """
    target = None if out is None else file_to_write(out)
    if target is not None:
        suffix_of(target, WRITABLE)
    main = target or file_to_write(statistics or "")
    job = make_job(model, images, labels, dtype=dtype, shard_size=shard_size, part=part)
    scored = None if target is None else _already(target, job, part)
    if scored is not None and target is not None:
        if statistics is not None:
            rows = statistics_of_npz(target) if scored.n else None
            write_statistics(statistics, rows, _part_of(job, part))
        return scored
    with unfinished_work(main.with_name(f"{main.name}.parts"), main) as folder:
        store = ShardStore(folder, cache=cache_folder(cache))
        done = run_job(job, store, engine, reporting or Reporting())
        about = done.outlines[CLEAN]
        if statistics is not None:
            write_statistics(statistics, _statistics(job, store, done), _part_of(job, part))
        if target is not None and target.suffix.lower() == ".npz":
            _write_npz(target, folder, job, store, done=done, part=part)
        elif target is not None:
            if not about.k:
                raise none_readable(job, about)
            write_scores(target, _scores(job, store, done))
    warn_of_bad(job, about.bad)
    bad, labelled = left_out(job, about.bad), done.labels is not None
    return Scored(about.n, about.k, labelled, done.computed, bad, job.set_key(CLEAN))


def _already(target: Path, job: Job, part: tuple[int, int] | None) -> Scored | None:
    """What is in the file, if it was made by this very job."""
    if target.suffix.lower() != ".npz" or not target.exists():
        return None
    try:
        origin = json.loads(str(read_npz(target, ["origin"])["origin"]))
        key, k = origin["key"], origin["k"]
        if key != job.set_key(CLEAN):
            return None
        labels = model_labels(job.images, job.model, k)
        if origin["around"] != _around(job, labels, part):
            return None
        return Scored(origin["n"], k, labels is not None, 0, origin["left_out"], key)
    except (FileError, ValueError, KeyError, TypeError):
        return None  # whatever it is, it is replaced


def _statistics(job: Job, store: ShardStore, done: Finished) -> ScoreStatistics | None:
    """Of all rows, one shard at a time; ``None`` without rows."""
    if not done.outlines[CLEAN].n:
        return None
    labels, classes = done.labels, job.model.classes
    return ScoreStatistics.merged(
        ScoreStatistics.of(
            Scores(r.logits, labels=None if labels is None else labels[r.rows], classes=classes)
        )
        for r in results_of(job, CLEAN, store)
    )


def _digest_of_names(images: ImageSet) -> str | None:
    """A digest of the names of images; ``None`` if they have numbers only."""
    if not are_named(images):
        return None
    blocks = np.array_split(np.arange(len(images)), len(images) // BLOCK + 1)
    return checksum_of({"names": [checksum_of({"ids": images.ids(block)}) for block in blocks]})


def _around(job: Job, labels: Labels | None, part: tuple[int, int] | None) -> str:
    """A digest of what a scores file holds in addition to the outputs of the model."""
    return checksum_of(
        {
            "labels": digest_of_labels(labels),
            "names": _digest_of_names(job.images),
            "classes": job.model.classes,
            "part": part,
        }
    )


def _part_of(job: Job, part: tuple[int, int] | None) -> Part | None:
    """The description of a part; ``None`` if the job is not one.

    Parts may be scored on different machines. They must agree in model, preprocessing and options,
    in number, names and labels of all images, and in the content of a sample of them.
    """
    if part is None:
        return None
    images = job.images
    sample = np.unique(np.linspace(0, len(images) - 1, _SAMPLE).astype(np.intp))
    key = checksum_of(
        {
            "model": job.model_id["fingerprint"],
            "preprocessing": job.model_id["preprocessing"],
            "dtype": job.dtype,
            "shard_size": job.shard_size,
            "names": _digest_of_names(images),
            "labels": digest_of_labels(images.labels),
            "classes": images.classes,
            "sample": images.digest(sample),
        }
    )
    return Part(*part, *job.span, n_images=len(images), key=key)


def _write_npz(
    target: Path,
    folder: Path,
    job: Job,
    store: ShardStore,
    *,
    done: Finished,
    part: tuple[int, int] | None,
) -> None:
    """Write the scores file of a finished job in pieces, first to the folder of the shards."""
    about, images, classes = done.outlines[CLEAN], job.images, job.model.classes
    origin = {
        "key": job.set_key(CLEAN),
        "around": _around(job, done.labels, part),
        "n": about.n,
        "k": about.k,
        "left_out": left_out(job, about.bad),
        **job.origin(),
    }
    unfinished = folder / "scores.npz"
    try:
        with NpzStream(unfinished) as archive:
            write_set(archive, job, CLEAN, store, done)
            archive.array("origin", text_of(origin))
            if are_named(images) and about.n:
                blocks = np.array_split(about.rows(), about.n // BLOCK + 1)
                width = max(len(name) for block in blocks for name in images.ids(block))
                names = (np.array(images.ids(block), np.str_) for block in blocks)
                archive.pieces("ids", (about.n,), f"U{width}", names)
            if classes is not None:
                archive.array("classes", np.array(classes, np.str_))
            if (described := _part_of(job, part)) is not None:
                # From these `merge` makes the origin of the whole.
                whole = {
                    "around": _around(job, done.labels, None) if about.k else None,
                    "shard_keys": [shard.key for shard in job.shards(CLEAN)],
                    "image_digests": job.image_digests(),
                }
                archive.array("part", text_of(asdict(described) | whole))
        flush_file(unfinished)
        put_in_place(unfinished, target)
    except OSError as error:
        raise FileError(
            f"{target} could not be written: {error.strerror or error}. Finished shards are kept; "
            "the same command resumes from there."
        ) from error
    flush_folder(target.parent)


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
    """Whatever turns inputs into scores; arguments as for :func:`score_inputs`.

    Attributes:
        input: What it gives.
        classes: Names of the classes, if known.
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
        self.classes = None if classes is None else tuple(classes)

    def scores(self, inputs: Any, *, where: str, hint: str = "") -> Scores:
        """Checked scores of inputs, which messages call ``where``; ``hint`` if the model fails."""
        n = count_inputs(inputs)
        try:
            given = self._call(inputs)
        except Exception as error:  # a user's model raises anything
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
        return Scores(values, self.input, classes=self.classes)

    def _checked(self, given: Any) -> Floats:
        if self.input == "probabilities":
            return check_probs(given)
        if self.labels is not None and np.ndim(given) == 1:
            given = np.column_stack([np.zeros_like(given), given])
        return np.array(check_logits(given))  # the model may reuse a buffer


def _labels_of(model: Any) -> Any:
    """The classes of a fitted classifier; ``None`` of a function."""
    kind = type(model).__name__
    if isinstance(model, Model):
        raise InputError(
            f"model must be a classifier or a function of inputs; {kind} is a model of images, for "
            "SurrogateBank.synthesize and shiftcal.score."
        )
    if any(hasattr(model, name) for name in ("fit", "predict")):
        found = getattr(model, "classes_", None)
        if found is None or isinstance(found, list):
            wrong = "has no classes_" if found is None else f"has {len(found)} outputs"
            raise InputError(
                f"model must be a fitted classifier with one output; {kind} {wrong}. Fit it first, "
                "or pass a function that gives the probabilities of one output."
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
                from shiftcal.models.sklearn import refuse_pairs

                refuse_pairs(model)
            return getattr(model, name), kind
    wanted = " or ".join(_GIVES.values()) if input is None else _GIVES[input]
    raise InputError(
        f"model must have {wanted}; {type(model).__name__} has not. CalibratedClassifierCV around "
        "it gives probabilities."
    )


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

    What :class:`~shiftcal.methods.simple.PseudoCal` adapts to:
    ``method.adapt(scores, mixed=score_mixed(model, images, scores))``. The model runs over the
    images as they are, unless their scores are given, and then over those mixtures of two of them
    that :func:`shiftcal.datasets.mix_images` makes. Labels of the images are not used.

    Args:
        model: A model, or what :func:`shiftcal.models.as_model` makes one of.
        images: The target: a set of images, or what :func:`shiftcal.datasets.as_image_set` makes
            one of.
        scores: What the model gave for them, to save that pass. If some could not be read and are
            not in it, the others are known by their ids.
        ratio: Share of the first image in a mixture, above 0.5 and below 1.
        seed: Of the permutation that decides which images are mixed.
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
    known = score(made, target, **options) if scores is None else scores
    if not isinstance(known, Scores):
        raise InputError(f"scores must be Scores, as shiftcal.score gives them; got {type(known)}.")
    if known.n != len(target):
        target = target.subset(_rows(known, target), name=target.name)
    mixtures = mix_images(target, known.values, ratio=ratio, seed=seed)
    return score(made, mixtures, **options)


def _rows(scores: Scores, images: ImageSet) -> NDArray[np.intp]:
    """Which images scores are of, if they are not of all."""
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
