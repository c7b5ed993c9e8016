"""The ``.npz`` file of a finished job: its rows, and how they were made."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._files import flush_file, flush_folder
from shiftcal.errors import FileError
from shiftcal.scoring.gather import Outline, Pieces, write_set
from shiftcal.scoring.job import Job
from shiftcal.scoring.names import are_named, in_blocks, width_of
from shiftcal.scoring.run import Finished, left_out
from shiftcal.scoring.store import Store
from shiftcal.scoring.whole import Whole


def write_npz(
    target: Path, workshop: Path, job: Job, store: Store, *, done: Finished, whole: Whole
) -> None:
    """Write the file, a piece at a time; it is there whole or not at all.

    Args:
        target: The file.
        workshop: Folder for what is not finished, on the same disk.
        job: Of one condition.
        store: Where its shards are.
        done: What came of it.
        whole: What it is a part of.

    Raises:
        FileError: If it cannot be written; what is done is kept.
    """
    (condition,) = job.conditions
    about = done.outlines[condition]
    more = _beside(job, about, done=done, whole=whole)
    # In the workshop, so that what a killed process leaves goes with it.
    unfinished = workshop / f"{secrets.token_hex(6)}.npz"
    try:
        write_set(unfinished, job, condition, store, about=about, labels=done.labels, more=more)
        flush_file(unfinished)
        unfinished.replace(target)
    except OSError as error:
        raise FileError(
            f"{target} could not be written: {error.strerror or error}. What is done is kept; the "
            "same command goes on from there."
        ) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    flush_folder(target.parent)


def _beside(
    job: Job, about: Outline, *, done: Finished, whole: Whole
) -> dict[str, NDArray[Any] | Pieces]:
    """What the file holds beside scores, labels and features."""
    images, classes = job.work.images, job.work.model.classes
    part = whole.part
    which = None if part is None else (part.shard, part.of)
    (condition,) = job.conditions
    origin = {
        "key": job.set_key(condition),
        "around": whole.around(done.labels, which),
        "n": about.n,
        "k": about.k,
        "left_out": left_out(job, about.bad),
        **job.origin(),
    }
    more: dict[str, NDArray[Any] | Pieces] = {"origin": text_of(origin)}
    if are_named(images):
        dtype = width_of(images, about.blocks())
        more["ids"] = Pieces((about.n,), dtype, in_blocks(images, about.blocks()))
    if classes is not None:
        more["classes"] = np.array(classes, np.str_)
    if part is not None:
        # Of these `merge` makes what a file of the whole says of itself.
        note = {**part.to_dict(), "around": whole.around(done.labels, None) if about.k else None}
        more["part"] = text_of(note)
        more["shard_keys"] = np.array([shard.key for shard in job.shards_of(condition)], np.bytes_)
        more["shard_images"] = np.array(job.image_digests(), np.bytes_)
    return more


def text_of(document: Mapping[str, Any]) -> NDArray[np.str_]:
    """A document as an array of an archive."""
    return np.array(json.dumps(document, sort_keys=True), np.str_)
