"""Scores of images, or of one part of n of them, in a file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftcal._checks import check_count
from shiftcal._files import file_to_write
from shiftcal.datasets import as_image_set
from shiftcal.errors import FileError, InputError
from shiftcal.models import Model, as_model
from shiftcal.scores import Scores, write_scores
from shiftcal.scores._read import format_of
from shiftcal.scores._write import WRITABLE
from shiftcal.scores.npz import read_member
from shiftcal.scoring._score import CLEAN
from shiftcal.scoring.gather import gathered, none_readable, results_of
from shiftcal.scoring.job import SHARD_SIZE, Job
from shiftcal.scoring.merging.merge import statistics_of_npz
from shiftcal.scoring.names import names_of
from shiftcal.scoring.notes import Notes
from shiftcal.scoring.pending import pending
from shiftcal.scoring.run import (
    Finished,
    Reporting,
    known_labels,
    left_out,
    run_job,
    warn_of_bad,
)
from shiftcal.scoring.scores_npz import write_npz
from shiftcal.scoring.setup import as_engine, cache_folder, make_work
from shiftcal.scoring.statistics.file import write_statistics
from shiftcal.scoring.statistics.score_statistics import ScoreStatistics
from shiftcal.scoring.store import FolderStore, Store
from shiftcal.scoring.whole import Whole
from shiftcal.scoring.workshop import workshop


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


def score_file(  # noqa: PLR0913 (all but the first three are options)
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
        format_of(target, WRITABLE)
    beside = target or file_to_write(statistics or "")
    with workshop(beside.with_name(f"{beside.name}.parts")) as folder:
        there = {} if target is None else _told(target)
        made = as_model(model)
        work = make_work(
            made,
            images,
            labels,
            dtype=dtype,
            notes=Notes(folder, cache_folder(cache)),
            before=_batch_size(there, made),
        )
        size = check_count(shard_size, name="shard_size")
        job = Job(work, (CLEAN,), shard_size=size, span=_span(len(work.images), part, size))
        whole = Whole(job, part)
        scored = _already(there, job, whole, part)
        if scored is None:
            store = FolderStore(folder / "shards", cache=cache_folder(cache))
            try:
                done = run_job(job, store, as_engine(engine), reporting or Reporting())
                if statistics is not None:
                    write_statistics(statistics, _statistics(job, store, done), whole.part)
                if target is not None:
                    _write(target, folder, job, store, done=done, whole=whole)
            finally:
                store.close()
            warn_of_bad(job, done.outlines[CLEAN].bad)
            scored = _scored(job, done)
        elif statistics is not None:
            assert target is not None
            rows = statistics_of_npz(target) if scored.n else None
            write_statistics(statistics, rows, whole.part)
    return scored


def to_be_scored(
    model: object,
    images: object,
    out: Path,
    *,
    dtype: str = "float32",
    cache: str | os.PathLike[str] | None = None,
) -> tuple[int, str | None]:
    """How many images :func:`score_file` would score for an ``.npz`` file; nothing is written.

    Args:
        model: As for :func:`score`.
        images: As for :func:`score`.
        out: The file.
        dtype: As for :func:`score`.
        cache: As for :func:`score`.

    Returns:
        How many, and the digest of the scores; ``None`` if nothing at all is there yet.
    """
    made, opened = as_model(model), as_image_set(images)
    parts, shared = out.with_name(f"{out.name}.parts"), cache_folder(cache)
    told = _told(out)
    if not told and not parts.is_dir() and not (shared is not None and shared.is_dir()):
        return len(opened), None
    notes = Notes(parts if parts.is_dir() else None, shared)
    work = make_work(made, opened, dtype=dtype, notes=notes, before=_batch_size(told, made))
    job = Job(work, (CLEAN,), lasting=False)
    key = job.set_key(CLEAN)
    if _already(told, job, Whole(job, None), None) is not None:
        return 0, key
    store = FolderStore(parts / "shards", cache=shared)
    try:
        return pending(job, store), key
    finally:
        store.close()


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


def _told(target: Path) -> dict[str, Any]:
    """What a file says about how it was made; nothing if it is not there, or not one of ours."""
    if target.suffix.lower() != ".npz" or not target.exists():
        return {}
    try:
        told = json.loads(str(read_member(target, "origin")))
        return told if type(told["model"]["batch_size"]) is int else {}
    except (FileError, ValueError, KeyError, TypeError):
        return {}  # whatever it is, it is replaced


def _batch_size(told: dict[str, Any], model: Model) -> int | None:
    """That of the file, if it was made with this model."""
    same = told and told["model"].get("fingerprint") == model.fingerprint
    return told["model"]["batch_size"] if same else None


def _already(
    told: dict[str, Any], job: Job, whole: Whole, part: tuple[int, int] | None
) -> Scored | None:
    """What is in the file, if it was made by this very job."""
    try:
        if told.get("key") != job.set_key(CLEAN):
            return None
        labels = known_labels(job, told["k"])
        if told["around"] != whole.around(labels, part):
            return None
        return Scored(told["n"], told["k"], labels is not None, 0, told["left_out"], told["key"])
    except (KeyError, TypeError):
        return None


def _scored(job: Job, done: Finished) -> Scored:
    about = done.outlines[CLEAN]
    labels = done.labels is not None
    bad = left_out(job, about.bad)
    return Scored(about.n, about.k, labels, done.computed, bad, job.set_key(CLEAN))


def _statistics(job: Job, store: Store, done: Finished) -> ScoreStatistics | None:
    """Of all rows, a shard at a time; ``None`` if there is no row."""
    if not done.outlines[CLEAN].n:
        return None
    return ScoreStatistics.merged(
        ScoreStatistics.of(
            Scores(
                result.logits,
                labels=None if done.labels is None else done.labels[result.rows],
                classes=job.work.model.classes,
            )
        )
        for result in results_of(job, CLEAN, store)
        if len(result.rows)
    )


def _write(
    target: Path, folder: Path, job: Job, store: Store, *, done: Finished, whole: Whole
) -> None:
    """The file; one of another kind than ``.npz`` by way of memory."""
    if target.suffix.lower() == ".npz":
        write_npz(target, folder, job, store, done=done, whole=whole)
        return
    about = done.outlines[CLEAN]
    if not about.k:
        raise none_readable(job, about.bad)
    ids, classes = names_of(job.work.images, about.rows), job.work.model.classes
    z, features = gathered(job, CLEAN, store)
    labels = None if done.labels is None else done.labels[about.rows]
    write_scores(target, Scores(z, "logits", labels, features, ids, classes))
