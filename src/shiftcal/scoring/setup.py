"""From what a caller gives to work that can be done."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from shiftcal._checks import check_choice, check_count
from shiftcal._types import Images
from shiftcal.corruptions._engine import TABLES
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.errors import InputError
from shiftcal.models import Model, as_model
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.engines.local import LocalEngine
from shiftcal.scoring.given_labels import with_labels
from shiftcal.scoring.notes import Notes
from shiftcal.scoring.second_resize import warn_of_second_resize
from shiftcal.scoring.work import Work

# Images that are looked at to find one that can be read.
_FIRST = 64


def make_work(
    model: object,
    images: object,
    labels: object = None,
    *,
    seed: int = 0,
    table: str = "auto",
    dtype: str = "float32",
    notes: Notes | None = None,
    before: int | None = None,
) -> Work:
    """Work with everything settled that decides its result.

    Args:
        model: A model, or what :func:`shiftcal.models.as_model` makes one of.
        images: A set of images, or what :func:`shiftcal.datasets.as_image_set` makes one of.
        labels: Their labels, if the set has none.
        seed: Fixes the random numbers of corruptions.
        table: Whose strengths.
        dtype: ``"float32"`` or ``"float16"``.
        notes: Where a batch size that was found is kept, so that others and later runs have the
            same.
        before: The batch size of finished results that are to be added to, or checked; used where
            the model leaves it open.
    """
    opened = as_image_set(images)
    made = as_model(model)
    found = with_labels(opened, labels, made)
    warn_of_second_resize(made, found)
    settled = {
        "seed": check_count(seed, name="seed", least=0, most=2**128),
        "table": check_choice(table, ("auto", *TABLES), name="table"),
        "dtype": check_choice(dtype, ("float32", "float16"), name="dtype"),
    }
    return Work(made, found, _batch_size(made, found, notes or Notes(), before), **settled)


def as_engine(engine: object) -> Engine:
    """An engine; ``None`` is one worker in this process."""
    if engine is None:
        return LocalEngine()
    if isinstance(engine, Engine):
        return engine
    raise InputError(
        "engine must be an engine, such as LocalEngine(workers=2) of shiftcal.scoring.engines; "
        f"got {engine!r}."
    )


def cache_folder(cache: str | os.PathLike[str] | None) -> Path | None:
    """The folder of the cache: what was said, or else what ``SHIFTCAL_CACHE`` says."""
    told = cache if cache is not None else os.environ.get("SHIFTCAL_CACHE") or None
    return None if told is None else Path(told)


def _batch_size(model: Model, images: ImageSet, notes: Notes, before: int | None) -> int:
    if model.batch_size is not None:
        return model.batch_size
    if before is not None:
        return check_count(before, name="the batch size of what is there")

    def find() -> int:
        return model.size_of_batches(first_images(images, model, _FIRST))

    fingerprint = model.fingerprint
    if fingerprint is None:
        return find()
    size = first_images(images, model, 1).shape[1:3]
    told = json.dumps([fingerprint, model.preprocessing.to_dict(), model.memory_budget, size])
    return notes.settled(hashlib.blake2b(told.encode(), digest_size=16).hexdigest(), find)


def first_images(images: ImageSet, model: Model, count: int) -> Images:
    """The first images as the model takes them, or some from all over if none of them is readable.

    Raises:
        InputError: If none of those can be read either.
    """
    n = len(images)
    spread = np.unique(np.linspace(0, n - 1, _FIRST).astype(np.intp))
    for indices in (np.arange(min(n, count)), np.arange(min(n, _FIRST)), spread):
        some = images.read(indices, framing=model.preprocessing.framing)
        if len(some.indices):
            return some.images
    reason = next(iter(some.bad.values()))
    raise InputError(f"none of the images of {images.name} that were tried can be read: {reason}")
