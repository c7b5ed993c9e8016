"""Finished shards, put together in the order of the images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shiftcal._types import Floats, Labels, Logits
from shiftcal.errors import FileError, InputError
from shiftcal.scores._npz_stream import NpzStream
from shiftcal.scoring.job import Job
from shiftcal.scoring.names import BLOCK
from shiftcal.scoring.shard import Condition, ShardResult
from shiftcal.scoring.store import Store


class DamagedShard(FileError):
    """A shard that was there proved damaged, and is gone: it has to be made again."""

    def __init__(self) -> None:
        super().__init__(
            "a finished shard was found damaged, or was removed, while results were put together. "
            "The same command makes it again."
        )


@dataclass(frozen=True, eq=False)
class Outline:
    """What a finished set is, without its rows.

    Attributes:
        span: First index and index after the last of its images.
        k: Number of classes; 0 if no image could be read.
        d: Number of features; 0 if there are none.
        bad: What was wrong with the images that were left out, by index.
    """

    span: tuple[int, int]
    k: int
    d: int
    bad: dict[int, str]

    @property
    def n(self) -> int:
        """How many rows it has."""
        return self.span[1] - self.span[0] - len(self.bad)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Indices of the images that could be read, ``(n,)``."""
        return np.concatenate([np.empty(0, np.int64), *self.blocks()])

    def blocks(self) -> Iterator[NDArray[np.int64]]:
        """The same, some at a time."""
        bad = np.array(sorted(self.bad), np.int64)
        for start in range(*self.span, BLOCK):
            stop = min(start + BLOCK, self.span[1])
            first, last = np.searchsorted(bad, (start, stop))
            yield np.delete(np.arange(start, stop, dtype=np.int64), bad[first:last] - start)


class Pieces(NamedTuple):
    """An array that is not in memory as a whole.

    Attributes:
        shape: Of the whole.
        dtype: Of the whole.
        pieces: Along its first axis.
    """

    shape: tuple[int, ...]
    dtype: DTypeLike
    pieces: Iterable[NDArray[Any]]


def outline(job: Job, condition: Condition, store: Store) -> Outline:
    """What the shards of a set amount to; every one is read, and checked, once.

    Raises:
        DamagedShard: If one has to be made again.
        InputError: If no image of the whole set could be read, or shards of different models have
            one key. A part of it may have no row.
    """
    bad: dict[int, str] = {}
    widths: set[tuple[int, int]] = set()
    for result in results_of(job, condition, store):
        bad |= result.bad
        if len(result.rows):
            d = 0 if result.features is None else result.features.shape[1]
            widths.add((result.logits.shape[1], d))
    if len(widths) > 1:
        raise InputError(
            f"shards of {job.work.images.name}, {condition.name}, must all come from one model; "
            f"they have {_in_words(widths)}. The model has changed and its key has not: give it "
            "another key."
        )
    if not widths and job.span == (0, len(job.work.images)):
        raise none_readable(job, bad)
    k, d = widths.pop() if widths else (0, 0)
    return Outline(job.span, k, d, bad)


def none_readable(job: Job, bad: Mapping[int, str]) -> InputError:
    """The error of a job that has no row to give."""
    return InputError(
        f"none of the {len(bad):,} images of {job.work.images.name} could be read. "
        f"The first: {bad[min(bad)]}"
    )


def _in_words(widths: set[tuple[int, int]]) -> str:
    return " and ".join(f"{k} classes with {d} features" for k, d in sorted(widths))


def gathered(job: Job, condition: Condition, store: Store) -> tuple[Logits, Floats | None]:
    """Logits and features of a set, in memory."""
    results = [r for r in results_of(job, condition, store) if len(r.rows)]
    features = [r.features for r in results if r.features is not None]
    logits = np.concatenate([r.logits for r in results])
    return logits, np.concatenate(features) if features else None


def write_set(
    path: Path,
    job: Job,
    condition: Condition,
    store: Store,
    *,
    about: Outline,
    labels: Labels | None,
    more: Mapping[str, NDArray[Any] | Pieces] | None = None,
) -> None:
    """Write a set as an ``.npz`` scores file, a shard at a time.

    Args:
        path: The file; not written under its name until it is whole by whoever calls this.
        job: What was done.
        condition: Which set.
        store: Where its shards are.
        about: Its outline.
        labels: Of all images as columns of the logits, if known.
        more: Further arrays, such as ids.
    """
    n = about.n
    with NpzStream(path) as archive:
        archive.pieces(
            "logits",
            (n, about.k),
            job.work.dtype,
            (r.logits for r in results_of(job, condition, store) if len(r.rows)),
        )
        if labels is not None:
            archive.pieces("labels", (n,), np.int64, (labels[rows] for rows in about.blocks()))
        if about.d:
            archive.pieces(
                "features",
                (n, about.d),
                job.work.dtype,
                (r.features for r in results_of(job, condition, store) if r.features is not None),
            )
        for name, values in (more or {}).items():
            if isinstance(values, Pieces):
                archive.pieces(name, *values)
            else:
                archive.array(name, values)


def results_of(job: Job, condition: Condition, store: Store) -> Iterator[ShardResult]:
    """The shards of a set, in the order of the images.

    Raises:
        DamagedShard: If one has to be made again.
    """
    for shard in job.shards_of(condition):
        result = store.get(shard.key)
        if result is None:
            raise DamagedShard
        yield result
