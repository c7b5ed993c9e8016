"""From what a caller gives to work that can be done."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal._checks import check_choice, check_count
from shiftcal._files import atomic_write
from shiftcal.corruptions._engine import TABLES
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.errors import FileError, InputError
from shiftcal.models import Model, as_model
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.engines.local import LocalEngine
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
    notes: Path | None = None,
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
        notes: File that keeps a batch size that was found, so that a later run has the same.
        before: The batch size of finished results that are to be added to, or checked; used where
            the model leaves it open.
    """
    found = as_image_set(images, labels=labels)
    made = as_model(model)
    settled = {
        "seed": check_count(seed, name="seed", least=0, most=2**128),
        "table": check_choice(table, ("auto", *TABLES), name="table"),
        "dtype": check_choice(dtype, ("float32", "float16"), name="dtype"),
    }
    return Work(made, found, _batch_size(made, found, notes, before), **settled)


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


def _batch_size(model: Model, images: ImageSet, notes: Path | None, before: int | None) -> int:
    if model.batch_size is not None:
        return model.batch_size
    if before is not None:
        return check_count(before, name="the batch size of what is there")
    name = _name_of(model)
    known = _read_notes(notes)
    if name is not None and name in known:
        return check_count(known[name], name=f"the batch size in {notes}")
    framing = model.preprocessing.framing
    some = images.read(np.arange(min(len(images), _FIRST)), framing=framing)
    if not len(some.indices):
        reason = next(iter(some.bad.values()))
        raise InputError(f"none of the first images of {images.name} can be read: {reason}")
    size = model.size_of_batches(some.images)
    if notes is not None and name is not None:
        known[name] = size
        with atomic_write(notes) as temporary:
            temporary.write_text(json.dumps(known, indent=1), "utf-8")
    return size


def _name_of(model: Model) -> str | None:
    fingerprint = model.fingerprint
    if fingerprint is None:
        return None
    told = json.dumps([fingerprint, model.preprocessing.to_dict(), model.memory_budget])
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


def _read_notes(notes: Path | None) -> dict[str, Any]:
    if notes is None or not notes.exists():
        return {}
    try:
        found = json.loads(notes.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"{notes} is damaged ({error}). Remove it.") from error
    return found if isinstance(found, dict) else {}
