"""From a job to finished sets in a store, whatever was done before."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shiftcal._types import Labels
from shiftcal.errors import FileError, InputWarning
from shiftcal.scoring.complete import complete
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.gather import DamagedShard, Outline, outline
from shiftcal.scoring.job import Job
from shiftcal.scoring.labels import model_labels
from shiftcal.scoring.progress import showing
from shiftcal.scoring.shard import Condition
from shiftcal.scoring.store import Store

# A damaged file is made again; a disk that damages more than that is not worth going on with.
_ATTEMPTS = 3
# Images that are named in a warning.
_NAMED = 3


@dataclass(frozen=True)
class Reporting:
    """How progress is told.

    Attributes:
        shown: Whether a bar is shown; ``None`` is on a terminal.
        line: Where there is no bar: told the same in words now and then.
    """

    shown: bool | None = None
    line: Callable[[str], None] | None = None


@dataclass(frozen=True, eq=False)
class Finished:
    """A job whose shards are all in the store.

    Attributes:
        outlines: What each set is.
        labels: Of all images as columns of the logits, if known.
        computed: Images that were scored by this run, and not before.
    """

    outlines: dict[Condition, Outline]
    labels: Labels | None
    computed: int


def run_job(job: Job, store: Store, engine: Engine, reporting: Reporting) -> Finished:
    """Have all shards of a job in the store, and look them over.

    Raises:
        InputError: If the model fails, or labels are not among its classes.
        FileError: If results cannot be kept.
    """
    work = job.work
    computed = 0

    def first(k: int) -> None:
        model_labels(work.images, work.model, k)

    for _ in range(_ATTEMPTS):
        with showing(
            f"scoring {work.images.name}", job.n_images, shown=reporting.shown, line=reporting.line
        ) as step:
            computed += complete(job, store, engine, step=step, first=first)
        try:
            outlines = {condition: outline(job, condition, store) for condition in job.conditions}
        except DamagedShard:
            continue
        k = next(iter(outlines.values())).k
        return Finished(outlines, known_labels(job, k), computed)
    raise FileError(
        "finished shards were found damaged again and again. Look at the disk they are on."
    )


def known_labels(job: Job, k: int) -> Labels | None:
    """Labels of all images as columns of the logits; ``None`` if there are none of either."""
    return model_labels(job.work.images, job.work.model, k) if k else None


def left_out(job: Job, bad: dict[int, str]) -> list[dict[str, Any]]:
    """Images that could not be read, as JSON can hold them."""
    names = job.work.images.ids(sorted(bad)) if bad else []
    return [
        {"index": index, "id": name, "reason": bad[index]}
        for index, name in zip(sorted(bad), names, strict=True)
    ]


def warn_of_bad(job: Job, bad: dict[int, str]) -> None:
    """Say which images could not be read."""
    if bad:
        some = "; ".join(bad[index].rstrip(".") for index in sorted(bad)[:_NAMED])
        more = f"; and {len(bad) - _NAMED:,} more" if len(bad) > _NAMED else ""
        warnings.warn(
            f"left out {len(bad):,} of {len(job.work.images):,} images: {some}{more}.",
            InputWarning,
            stacklevel=3,
        )
