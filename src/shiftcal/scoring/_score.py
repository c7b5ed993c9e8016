"""Scores of images in memory."""

from __future__ import annotations

import os

from shiftcal._checks import check_count
from shiftcal.scores import Scores
from shiftcal.scoring.gather import gathered
from shiftcal.scoring.job import SHARD_SIZE, Job
from shiftcal.scoring.names import names_of
from shiftcal.scoring.notes import Notes
from shiftcal.scoring.run import Reporting, run_job, warn_of_bad
from shiftcal.scoring.setup import as_engine, cache_folder, make_work
from shiftcal.scoring.shard import Condition
from shiftcal.scoring.store import passing_store

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
    with passing_store(folder) as store:
        done = run_job(job, store, as_engine(engine), Reporting(progress))
        about = done.outlines[CLEAN]
        warn_of_bad(job, about.bad)
        z, features = gathered(job, CLEAN, store)
    return Scores(
        z,
        labels=None if done.labels is None else done.labels[about.rows],
        features=features,
        ids=names_of(work.images, about.rows),
        classes=work.model.classes,
    )
