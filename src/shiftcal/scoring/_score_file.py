"""Scores of images, or of one part of n of them, in a file."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count
from shiftcal._files import file_to_write, flush_file, flush_folder
from shiftcal._types import Labels
from shiftcal.errors import FileError, InputError
from shiftcal.models import Model, as_model
from shiftcal.scores import Scores, read_scores, write_scores
from shiftcal.scores._read import format_of
from shiftcal.scores._write import WRITABLE
from shiftcal.scores.npz import read_member
from shiftcal.scoring._score import CLEAN, names_of
from shiftcal.scoring.gather import gathered, results_of, write_set
from shiftcal.scoring.job import SHARD_SIZE, Job
from shiftcal.scoring.labels import digest_of_labels, model_labels
from shiftcal.scoring.run import Finished, Reporting, left_out, run_job, warn_of_bad
from shiftcal.scoring.setup import as_engine, cache_folder, make_work
from shiftcal.scoring.sharing import guest_of
from shiftcal.scoring.statistics.file import write_statistics
from shiftcal.scoring.statistics.part import Part
from shiftcal.scoring.statistics.score_statistics import ScoreStatistics
from shiftcal.scoring.store import FolderStore, Store


@dataclass(frozen=True)
class Scored:
    """What came of scoring images.

    Attributes:
        n: Rows of the file.
        k: Number of classes.
        labels: Whether there are labels.
        computed: Images that were scored by this run; the others were there.
        left_out: Images that could not be read: index, id and reason of each.
    """

    n: int
    k: int
    labels: bool
    computed: int
    left_out: list[dict[str, Any]]


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
    with workshop_of(target or file_to_write(statistics or "")) as workshop:
        there = {} if target is None else _told(target)
        made = as_model(model)
        work = make_work(
            made,
            images,
            labels,
            dtype=dtype,
            notes=workshop / "notes.json",
            before=_batch_size(there, made),
        )
        size = check_count(shard_size, name="shard_size")
        job = Job(work, (CLEAN,), shard_size=size, span=_span(len(work.images), part, size))
        scored = _already(there, job, part)
        if scored is None:
            store = FolderStore(workshop / "shards", cache=cache_folder(cache))
            try:
                done = run_job(job, store, as_engine(engine), reporting or Reporting())
                scored = _scored(job, done)
                if statistics is not None:
                    write_statistics(statistics, _statistics(job, store, done), _part(job, part))
                if target is not None:
                    _write(target, workshop, job, store, done=done, part=part)
            finally:
                store.close()
            warn_of_bad(job, done.outlines[CLEAN].bad)
        elif statistics is not None:
            rows = ScoreStatistics.of(read_scores(target))  # type: ignore[arg-type]
            write_statistics(statistics, rows, _part(job, part))
    return scored


@contextmanager
def workshop_of(target: Path) -> Iterator[Path]:
    """The folder ``<target>.parts``, which is removed by the last who leaves it with his work done.

    If the work is broken off it stays, unless nothing was finished.
    """
    folder = target.with_name(f"{target.name}.parts")
    with guest_of(folder) as guest:
        try:
            yield folder
        except BaseException:
            if not any(folder.rglob("*.shard")) and guest.is_last():
                shutil.rmtree(folder, ignore_errors=True)
            raise
        if guest.is_last():
            shutil.rmtree(folder, ignore_errors=True)


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


def _already(told: dict[str, Any], job: Job, part: tuple[int, int] | None) -> Scored | None:
    """What is in the file, if it was made by this very job."""
    try:
        if told.get("key") != job.set_key(CLEAN):
            return None
        labels = model_labels(job.work.images, job.work.model, told["k"])
        if told["around"] != _around(job, labels, part):
            return None
        return Scored(told["n"], told["k"], labels is not None, 0, told["left_out"])
    except (KeyError, TypeError):
        return None


def _around(job: Job, labels: Labels | None, part: tuple[int, int] | None) -> str:
    """A digest of what is in a file beside the outputs of the model."""
    ids = names_of(job.work.images, np.arange(*job.span))
    names = None if ids is None else ids.tolist()
    told = [digest_of_labels(labels), names, job.work.model.classes, part]
    return hashlib.blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()


def _scored(job: Job, done: Finished) -> Scored:
    about = done.outlines[CLEAN]
    return Scored(
        len(about.rows), about.k, done.labels is not None, done.computed, left_out(job, about.bad)
    )


def _statistics(job: Job, store: Store, done: Finished) -> ScoreStatistics:
    """Of all rows, a shard at a time."""
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
    target: Path,
    workshop: Path,
    job: Job,
    store: Store,
    *,
    done: Finished,
    part: tuple[int, int] | None,
) -> None:
    about = done.outlines[CLEAN]
    ids, classes = names_of(job.work.images, about.rows), job.work.model.classes
    if target.suffix.lower() != ".npz":
        z, features = gathered(job, CLEAN, store)
        labels = None if done.labels is None else done.labels[about.rows]
        write_scores(target, Scores(z, "logits", labels, features, ids, classes))
        return
    more: dict[str, NDArray[Any]] = {
        "origin": _text(
            {
                "key": job.set_key(CLEAN),
                "around": _around(job, done.labels, part),
                "n": len(about.rows),
                "k": about.k,
                "left_out": left_out(job, about.bad),
                **job.origin(),
            }
        )
    }
    if ids is not None:
        more["ids"] = ids
    if classes is not None:
        more["classes"] = np.array(classes, np.str_)
    if (which := _part(job, part)) is not None:
        more["part"] = _text(which.to_dict())
    # In the workshop, so that what a killed process leaves goes with it.
    whole = workshop / f"{secrets.token_hex(6)}.npz"
    try:
        write_set(whole, job, CLEAN, store, about=about, labels=done.labels, more=more)
        flush_file(whole)
        whole.replace(target)
    except OSError as error:
        raise FileError(
            f"{target} could not be written: {error.strerror or error}. What is done is kept; the "
            "same command goes on from there."
        ) from error
    finally:
        with suppress(OSError):
            whole.unlink(missing_ok=True)
    flush_folder(target.parent)


def _part(job: Job, part: tuple[int, int] | None) -> Part | None:
    """Which part of which whole; machines that do the parts may differ in what they run it with."""
    if part is None:
        return None
    told = {
        "model": job.model_id["fingerprint"],
        "preprocessing": job.model_id["preprocessing"],
        "dtype": job.work.dtype,
        "shard_size": job.shard_size,
    }
    key = hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()
    return Part(*part, *job.span, n_images=len(job.work.images), key=key)


def _text(document: dict[str, Any]) -> NDArray[np.str_]:
    return np.array(json.dumps(document, sort_keys=True), np.str_)
