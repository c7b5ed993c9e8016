"""From a model and labelled images to a bank in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shiftcal._checks import check_count
from shiftcal._types import Labels
from shiftcal.errors import InputError
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.gather import gathered
from shiftcal.scoring.job import SHARD_SIZE, Job
from shiftcal.scoring.kept_features import check_which
from shiftcal.scoring.labels import digest_of_labels
from shiftcal.scoring.notes import Notes
from shiftcal.scoring.run import Finished, Reporting, left_out, run_job, warn_of_bad
from shiftcal.scoring.setup import as_engine, cache_folder, make_work
from shiftcal.scoring.shard import Condition
from shiftcal.scoring.store import Store, passing_store
from shiftcal.scoring.work import Work
from shiftcal.surrogates.bank import SurrogateBank, set_name
from shiftcal.surrogates.surrogate_set import SurrogateSet


@dataclass(frozen=True)
class Options:
    """What may be said about the making of a bank, and does not decide which sets it has.

    Attributes:
        seed: Fixes the random numbers of the corruptions.
        table: Whose strengths; ``"auto"`` goes by the size of the images.
        dtype: What logits are stored as, ``"float32"`` or ``"float16"``.
        engine: Where the work is done; ``None`` is one worker in this process.
        shard_size: Images that are scored and kept together.
        cache: Folder of finished shards, to be shared between banks; ``None`` is that of the
            environment variable ``SHIFTCAL_CACHE``, if there is one.
        features: Which sets keep the features of a model that gives them: ``"clean"``, ``"all"``
            or ``"none"``.
        reporting: How progress is told.
    """

    seed: int = 0
    table: str = "auto"
    dtype: str = "float32"
    engine: Engine | None = None
    shard_size: int = SHARD_SIZE
    cache: str | os.PathLike[str] | None = None
    features: str = "clean"
    reporting: Reporting = field(default_factory=Reporting)


def synthesize_in_memory(
    model: object,
    images: object,
    labels: object,
    conditions: Sequence[Condition],
    *,
    options: Options,
) -> SurrogateBank:
    """A bank of these sets; see :meth:`SurrogateBank.synthesize`."""
    folder = cache_folder(options.cache)
    work = labelled_work(model, images, labels, options, notes=Notes(cache=folder))
    size = check_count(options.shard_size, name="shard_size")
    job = Job(work, tuple(conditions), shard_size=size, lasting=folder is not None)
    with passing_store(folder) as store:
        done = run_job(job, store, as_engine(options.engine), options.reporting)
        warn_of_bad(job, done.outlines[conditions[0]].bad)
        sets = [
            _set(job, store, condition, done=done, position=j)
            for j, condition in enumerate(conditions)
        ]
    return SurrogateBank(sets, classes=work.model.classes, origin=origin_of(job, done))


def labelled_work(
    model: object,
    images: object,
    labels: object,
    options: Options,
    *,
    notes: Notes | None = None,
    before: int | None = None,
) -> Work:
    """Work whose images have labels.

    Args:
        model: As for :meth:`SurrogateBank.synthesize`.
        images: As for :meth:`SurrogateBank.synthesize`.
        labels: As for :meth:`SurrogateBank.synthesize`.
        options: How the bank is made.
        notes: Where a batch size that was found is kept.
        before: The batch size of a bank that is to be added to.

    Raises:
        InputError: If they have none.
    """
    features = check_which(options.features)
    work = make_work(
        model,
        images,
        labels,
        seed=options.seed,
        table=options.table,
        dtype=options.dtype,
        notes=notes,
        before=before,
    )
    if work.images.labels is None:
        raise InputError(
            f"{work.images.name} has no labels, and a surrogate bank needs them. Pass labels, on "
            "the command line --labels FILE, or put the images into one folder a class."
        )
    return replace(work, features=features)


def labels_of(done: Finished) -> Labels:
    """The labels of a finished job of labelled work."""
    assert done.labels is not None
    return done.labels


def origin_of(job: Job, done: Finished) -> dict[str, Any]:
    """How a bank was made, as JSON can hold it."""
    clean = done.outlines[job.conditions[0]]
    return {
        **job.origin(),
        "seed": job.work.seed,
        "table": job.work.table,
        "n_classes": clean.k,
        "labels": digest_of_labels(labels_of(done)),
        "left_out": left_out(job, clean.bad),
    }


def _set(
    job: Job, store: Store, condition: Condition, *, done: Finished, position: int
) -> SurrogateSet:
    logits, features = gathered(job, condition, store)
    corruption = None if condition.corruption is None else condition.corruption.name
    return SurrogateSet(
        logits,
        labels_of(done)[done.outlines[condition].rows],
        set_name(position, corruption, condition.severity),
        corruption=corruption,
        severity=condition.severity,
        features=features,
    )
