"""A model run over images or other inputs: scores in memory or in a file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.checks import check_choice, check_logits, check_probs
from shiftcal.corruptions.inputs import count_inputs
from shiftcal.datasets import as_image_set, mix_images
from shiftcal.errors import FileError, InputError
from shiftcal.files import (
    NpzStream,
    atomic_write,
    checksum_of,
    file_to_write,
    flush_folder,
    put_in_place,
    read_npz,
)
from shiftcal.models import Model, as_model
from shiftcal.models.sklearn import which_scores
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
    names_of,
    run_job,
    text_of,
    unfinished_work,
)
from shiftcal.scoring.statistics import (
    Part,
    ScoreStatistics,
    statistics_of_npz,
    write_statistics,
)

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
    job = Job(model, images, labels, dtype=dtype, shard_size=shard_size, lasting=lasting)
    done = run_job(job, ShardStore(cache=folder), engine, Reporting(progress))
    done.warn_of_bad()
    return _scores(done)


def _scores(done: Finished) -> Scores:
    rows, labels = done.rows, done.labels
    logits, features = done.arrays(CLEAN)
    names = names_of(done.job.images, rows)
    labels = None if labels is None else labels[rows]
    return Scores(logits, "logits", labels, features, names, done.classes)


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
    job = Job(model, images, labels, dtype=dtype, shard_size=shard_size, part=part)
    described = None if part is None else _part_of(job, *part)
    scored = None if target is None else _already(target, job, described)
    parts = main.with_name(f"{main.name}.parts")
    if scored is not None:
        shutil.rmtree(parts, ignore_errors=True)  # left by a process killed after it wrote the file
        if statistics is not None:
            write_statistics(statistics, statistics_of_npz(main), described)
        return scored
    with unfinished_work(parts, main) as folder:
        store = ShardStore(folder, cache=cache_folder(cache))
        done = run_job(job, store, engine, reporting or Reporting())
        if statistics is not None:
            write_statistics(statistics, _statistics(done), described)
        if target is not None and target.suffix.lower() == ".npz":
            _write_npz(target, folder, done, described)
        elif target is not None:
            if not done.k:
                raise done.none_readable()
            write_scores(target, _scores(done))
    done.warn_of_bad()
    labelled = done.labels is not None
    return Scored(len(done.rows), done.k, labelled, done.computed, done.left_out, _key(job))


def _key(job: Job) -> str:
    return checksum_of({"shards": job.keys(CLEAN)})


def _already(target: Path, job: Job, part: Part | None) -> Scored | None:
    """What is in the file, if it was made by this very job."""
    if target.suffix.lower() != ".npz" or not target.exists():
        return None
    try:
        found = read_npz(target, ["origin", "part"])
        origin = json.loads(str(found["origin"]))
        same = (origin["shards"], origin["content"]) == (job.keys(CLEAN), _content(job))
        if not same or str(found.get("part")) != str(part and text_of(part._asdict())):
            return None
        n, k, left_out = origin["n"], origin["k"], origin["left_out"]
    except (FileError, ValueError, KeyError, TypeError):
        return None  # whatever it is, it is replaced
    return Scored(n, k, bool(k) and job.images.labels is not None, 0, left_out, _key(job))


def _statistics(done: Finished) -> ScoreStatistics | None:
    """Of all rows, one shard at a time; ``None`` without rows."""
    labels, classes = done.labels, done.classes
    if not done.k:
        return None
    return ScoreStatistics.merged(
        ScoreStatistics.of(
            Scores(r.logits, labels=None if labels is None else labels[r.rows], classes=classes)
        )
        for r in done.results(CLEAN)
    )


def _content(job: Job) -> str:
    """A digest of what a scores file holds in addition to the outputs of the model."""
    images, names = job.images, []
    if are_named(images):
        blocks = np.array_split(np.arange(len(images)), len(images) // BLOCK + 1)
        names = [checksum_of({"ids": images.ids(block)}) for block in blocks]
    labels, classes = digest_of_labels(images.labels), [images.classes, job.model.classes]
    return checksum_of({"names": names, "labels": labels, "classes": classes})


def _part_of(job: Job, which: int, of: int) -> Part:
    """The description of a part.

    Parts may be scored on different machines. They must agree in model, preprocessing and options,
    in number, names and labels of all images, and in the content of a sample of them.
    """
    n = len(job.images)
    sample = np.unique(np.linspace(0, n - 1, _SAMPLE).astype(np.intp))
    key = checksum_of(
        {
            "model": [job.model_id["fingerprint"], job.model_id["preprocessing"]],
            "options": [job.dtype, job.shard_size],
            "content": _content(job),
            "sample": job.images.digest(sample),
        }
    )
    return Part(which, of, *job.span, n_images=n, key=key)


def _write_npz(target: Path, folder: Path, done: Finished, part: Part | None) -> None:
    """Write the scores file of a finished job in pieces, first to the folder of the shards."""
    job, images, rows = done.job, done.job.images, done.rows
    origin = {
        **job.origin(),
        "shards": job.keys(CLEAN),
        "content": _content(job),
        "n": len(rows),
        "k": done.k,
        "left_out": done.left_out,
    }
    unfinished = folder / "scores.npz"
    with atomic_write(unfinished) as temporary, NpzStream(temporary) as archive:
        done.write_set(archive, CLEAN)
        archive.array("origin", text_of(origin))
        if are_named(images) and len(rows):
            blocks = np.array_split(rows, len(rows) // BLOCK + 1)
            width = max(len(name) for block in blocks for name in images.ids(block))
            names = (np.array(images.ids(block), np.str_) for block in blocks)
            archive.pieces("ids", (len(rows),), f"U{width}", names)
        if done.classes is not None:
            archive.array("classes", np.array(done.classes, np.str_))
        if part is not None:
            archive.array("part", text_of(part._asdict()))
    put_in_place(unfinished, target)
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
    if input is not None:
        check_choice(input, tuple(_GIVES), name="input")
    labels, n = labels_of(model), count_inputs(inputs)
    call, kind = model, input or "logits"
    if labels is not None:
        kind = input or next((kind for kind, name in _GIVES.items() if hasattr(model, name)), kind)
        call = getattr(model, which_scores(model, _GIVES[kind]))
        classes = [str(each) for each in labels] if classes is None else classes
    try:
        given = call(inputs)
    except Exception as error:  # a user's model raises anything
        raise InputError(
            f"the model failed on the inputs: {type(error).__name__}: {error}"
        ) from error
    if labels is not None and np.ndim(given) == 1:
        given = np.column_stack([np.zeros_like(given), given])
    try:
        # A copy, since the model may reuse a buffer.
        values = check_probs(given) if kind == "probabilities" else np.array(check_logits(given))
    except InputError as error:
        raise InputError(f"the model's output cannot be used: {error}") from error
    if len(values) != n:
        raise InputError(
            f"the model's output must have a row for each of {n} inputs; got {len(values)} rows."
        )
    return Scores(values, kind, classes=classes)._trusted()  # type: ignore[arg-type]


def labels_of(model: Any) -> Any:
    """The classes of a fitted classifier; ``None`` of a function."""
    kind = type(model).__name__
    if isinstance(model, Model):
        raise InputError(f"model must be one of inputs; {kind} is for images: use shiftcal.score.")
    if any(hasattr(model, name) for name in ("fit", "predict")):
        found = getattr(model, "classes_", None)
        if found is None or isinstance(found, list):
            raise InputError(
                f"model must be a fitted classifier with one output; {kind} has no classes_ of one."
                " Fit it first, or pass a function."
            )
        return np.asarray(found)
    if isinstance(model, type) or not callable(model):
        raise InputError(
            f"model must be a fitted classifier or a function from inputs to logits; got {model!r}."
        )
    return None


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
        scores: What the model gave for them, to save that pass: a row for every image.
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
    if scores is None:
        scores = score(made, target, **options)
        if scores.n < len(target):  # some could not be read
            assert scores.ids is not None
            left = set(scores.ids.tolist())
            names = target.ids(np.arange(len(target)))
            rows = [row for row, name in enumerate(names) if name in left]
            target = target.subset(np.array(rows), name=target.name)
    if not isinstance(scores, Scores) or scores.n != len(target):
        raise InputError(
            f"scores must be Scores of the {len(target):,} images of {target.name}; got {scores!r}."
            " Leave images that cannot be read out of the set (images.subset)."
        )
    mixtures = mix_images(target, scores.values, ratio=ratio, seed=seed)
    return score(made, mixtures, **options)
