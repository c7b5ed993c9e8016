"""From a job to finished sets: missing shards are scored, the rest is read from the store."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice, check_count
from shiftcal.corruptions.corruption import TABLES
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.files import NpzStream, flush_file, flush_folder, put_in_place
from shiftcal.models import Model, as_model
from shiftcal.scoring.engines import Engine, LocalEngine
from shiftcal.scoring.statistics import Part
from shiftcal.scoring.store import FolderStore, Notes
from shiftcal.scoring.work import (
    BLOCK,
    Condition,
    Job,
    Shard,
    ShardResult,
    Work,
    are_named,
    digest_of_labels,
    digest_of_names,
    model_labels,
    warn_of_second_resize,
    with_labels,
)
from shiftcal.types import Floats, Images, Labels, Logits

# --------------------------------------------------------------------------------------
# Progress: a bar on a terminal, a line now and then elsewhere.
# --------------------------------------------------------------------------------------

# Seconds between two lines.
_BETWEEN = 15.0
# The remaining time is shown once this share is computed, or this many seconds have passed.
_SHARE, _WATCHED = 0.02, 10.0


class Step(Protocol):
    """Called with the number of images that are finished."""

    def __call__(self, images: int, *, kept: bool) -> None:
        """So many more images are finished; ``kept`` if an earlier run did them."""


@dataclass(frozen=True)
class Reporting:
    """How progress is reported.

    Attributes:
        shown: Whether a bar is shown; ``None`` is on a terminal.
        line: Without a bar, called with the progress in words now and then.
    """

    shown: bool | None = None
    line: Callable[[str], None] | None = None


class Pace:
    """Counts images and measures the rate; thread-safe.

    Args:
        total: Images in all.
        clock: Returns seconds.
        unit: What is counted, in words.
    """

    def __init__(
        self,
        total: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        unit: str = "images",
    ) -> None:
        self.total = total
        self.unit = unit
        self.done = 0
        self.computed = 0
        self._clock = clock
        self._begun = clock()
        self._first: float | None = None
        self._guard = threading.Lock()

    def add(self, images: int, *, kept: bool) -> None:
        """Count so many more; kept ones do not count for the rate."""
        with self._guard:
            self.done += images
            self.computed += 0 if kept else images
            if self._first is None and not kept:
                self._first = self._clock()

    @property
    def rate(self) -> float:
        """Images computed per second; 0 before the first."""
        passed = self._clock() - self._begun
        return self.computed / passed if passed > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Remaining seconds; ``None`` while too little is computed to know."""
        if self._first is None or not self.rate:
            return None
        to_do = self.total - self.done
        enough = self.computed >= _SHARE * (to_do + self.computed)
        watched = self._clock() - self._first >= _WATCHED
        return to_do / self.rate if enough or watched else None

    def __str__(self) -> str:
        counted = f"{self.done:,} of {self.total:,} {self.unit}"
        left, rate = self.left, self.rate
        if left is None:
            return counted
        minutes, seconds = divmod(round(left), 60)
        hours, minutes = divmod(minutes, 60)
        time_left = f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
        rate_text = f"{rate:,.{0 if rate >= 10 else 1}f} {self.unit}/s"
        return f"{counted}, {rate_text}, {time_left} left"


@contextmanager
def showing(
    doing: str,
    total: int,
    *,
    shown: bool | None = None,
    line: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    unit: str = "images",
) -> Iterator[Step]:
    """A function to be called with finished images.

    Args:
        doing: What stands before the numbers.
        total: Images in all.
        shown: Whether a bar is shown; ``None`` is if standard error is a terminal.
        line: Without a bar, called with the progress in words, at most every 15 seconds.
        clock: Returns seconds.
        unit: What is counted, in words.
    """
    pace = Pace(total, clock=clock, unit=unit)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not (terminal if shown is None else shown):
        last = clock()

        def write(images: int, *, kept: bool) -> None:
            nonlocal last
            pace.add(images, kept=kept)
            now = clock()
            if line is not None and now - last >= _BETWEEN:
                last = now
                line(f"{doing}: {pace}")

        yield write
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}", markup=False),
    )
    console = Console(stderr=True)
    if console.is_jupyter:  # Rich asks for widgets there; a line that is written again needs none.
        console = Console(
            stderr=True, force_jupyter=False, force_terminal=True, no_color=True
        )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(doing, total=pace.total, pace="")

        def draw(images: int, *, kept: bool) -> None:
            pace.add(images, kept=kept)
            words = str(pace).partition(f"{pace.unit}, ")[2]
            progress.update(task, completed=pace.done, pace=words)

        yield draw


# --------------------------------------------------------------------------------------
# Scoring whatever is missing of a job.
# --------------------------------------------------------------------------------------

# Seconds between two looks at what another process is doing.
_LOOK = 0.2
# A damaged shard is scored again; a disk that damages more than that needs attention.
_ATTEMPTS = 3
# Images that are named in a warning.
_NAMED = 3


class DamagedShard(FileError):
    """A finished shard was damaged and removed: it has to be scored again."""

    def __init__(self) -> None:
        super().__init__(
            "a finished shard was damaged or removed while results were put together. "
            "The same command computes it again."
        )


@dataclass(frozen=True, eq=False)
class Outline:
    """A finished set without its rows.

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
        """Number of rows."""
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


@dataclass(frozen=True, eq=False)
class Finished:
    """A job whose shards are all in the store.

    Attributes:
        outlines: Each set without its rows.
        labels: Of all images as columns of the logits, if known.
        computed: Images that this run scored.
    """

    outlines: dict[Condition, Outline]
    labels: Labels | None
    computed: int


def run_job(job: Job, store: FolderStore, engine: Engine, reporting: Reporting) -> Finished:
    """Have all shards of a job in the store, each checked.

    This is where a bank, or a scores file, is resumed: shards in the store are not scored again.

    Raises:
        InputError: If the model fails, or labels are not among its classes; finished shards are
            kept.
        FileError: If results cannot be stored.
    """
    doing, computed = f"scoring {job.work.images.name}", 0
    for _ in range(_ATTEMPTS):
        with showing(doing, job.n_images, shown=reporting.shown, line=reporting.line) as step:
            computed += _complete(job, store, engine, step)
        try:
            outlines = {condition: outline(job, condition, store) for condition in job.conditions}
        except DamagedShard:
            continue
        return Finished(outlines, known_labels(job, outlines[job.conditions[0]].k), computed)
    raise FileError("finished shards were damaged again and again. Check the disk they are on.")


def _complete(job: Job, store: FolderStore, engine: Engine, step: Step) -> int:
    """Score the missing shards; returns how many images were scored here.

    Shards that another process is scoring are waited for, and scored here if it gives up.
    """
    guard = threading.Lock()
    reported: dict[str, int] = {}  # images of unfinished shards, by key
    elsewhere: list[Shard] = []

    def report(key: str, images: int, *, kept: bool = False) -> None:
        """So many images of a shard are finished; each is reported once."""
        with guard:
            before = reported.get(key, 0)
            if images > before:
                reported[key] = images
                step(images - before, kept=kept)

    def missing(shards: Iterable[Shard]) -> Iterator[Shard]:
        for shard in shards:
            if not store.has(shard.key):
                if not store.claim(shard.key):
                    elsewhere.append(shard)
                    continue
                if not store.has(shard.key):  # else finished between the two looks
                    yield shard
                    continue
                store.release(shard.key)
            report(shard.key, len(shard), kept=True)

    scored, left = 0, job.shards()
    work = replace(job.work, tell=report)
    while True:
        for result in engine.map_shards(work, missing(left)):
            store.put(result)
            store.release(result.key)
            report(result.key, len(result.rows) + len(result.bad))
            scored += len(result.rows)
            if k := result.logits.shape[1]:
                known_labels(job, k)  # raises early if labels are not among the classes
        if not elsewhere:
            return scored
        time.sleep(_LOOK)
        left, elsewhere = iter(elsewhere), []


def results_of(job: Job, condition: Condition, store: FolderStore) -> Iterator[ShardResult]:
    """The shards of a set, in the order of the images.

    Raises:
        DamagedShard: If one has to be scored again.
    """
    for shard in job.shards_of(condition):
        result = store.get(shard.key)
        if result is None:
            raise DamagedShard
        yield result


def outline(job: Job, condition: Condition, store: FolderStore) -> Outline:
    """What the shards of a set amount to; each is read, and checked, once.

    Raises:
        DamagedShard: If one has to be scored again.
        InputError: If no image of the whole set could be read, or shards of different models have
            one key. A part of a set may have no row.
    """
    bad: dict[int, str] = {}
    widths: set[tuple[int, int]] = set()
    for result in results_of(job, condition, store):
        bad |= result.bad
        if len(result.rows):
            d = 0 if result.features is None else result.features.shape[1]
            widths.add((result.logits.shape[1], d))
    if len(widths) > 1:
        text = " and ".join(f"{k} classes with {d} features" for k, d in sorted(widths))
        raise InputError(
            f"shards of {job.work.images.name}, {condition.name}, must all come from one model; "
            f"they have {text}. The model has changed and its key has not: give it another key."
        )
    if not widths and job.span == (0, len(job.work.images)):
        raise none_readable(job, bad)
    k, d = widths.pop() if widths else (0, 0)
    return Outline(job.span, k, d, bad)


def none_readable(job: Job, bad: Mapping[int, str]) -> InputError:
    """The error of a job without any row."""
    return InputError(
        f"none of the {len(bad):,} images of {job.work.images.name} could be read. "
        f"The first: {bad[min(bad)]}"
    )


def known_labels(job: Job, k: int) -> Labels | None:
    """Labels of all images as columns of the logits; ``None`` if there are none of either."""
    return model_labels(job.work.images, job.work.model, k) if k else None


def left_out(job: Job, bad: dict[int, str]) -> list[dict[str, Any]]:
    """Images that could not be read, for JSON."""
    names = job.work.images.ids(sorted(bad)) if bad else []
    return [
        {"index": index, "id": name, "reason": bad[index]}
        for index, name in zip(sorted(bad), names, strict=True)
    ]


def warn_of_bad(job: Job, bad: dict[int, str]) -> None:
    """Warn of images that could not be read."""
    if bad:
        some = "; ".join(bad[index].rstrip(".") for index in sorted(bad)[:_NAMED])
        more = f"; and {len(bad) - _NAMED:,} more" if len(bad) > _NAMED else ""
        warnings.warn(
            f"left out {len(bad):,} of {len(job.work.images):,} images: {some}{more}.",
            InputWarning,
            stacklevel=3,
        )


# --------------------------------------------------------------------------------------
# Finished shards put together, in memory or in a scores file.
# --------------------------------------------------------------------------------------

# Images whose content is compared between parts of a job.
_SAMPLE = 64


def gathered(job: Job, condition: Condition, store: FolderStore) -> tuple[Logits, Floats | None]:
    """Logits and features of a set, in memory."""
    results = [r for r in results_of(job, condition, store) if len(r.rows)]
    features = [r.features for r in results if r.features is not None]
    logits = np.concatenate([r.logits for r in results])
    return logits, np.concatenate(features) if features else None


def write_set(
    archive: NpzStream,
    job: Job,
    condition: Condition,
    store: FolderStore,
    *,
    about: Outline,
    labels: Labels | None,
) -> None:
    """Write logits, labels and features of a set to an archive, one shard at a time."""
    dtype = job.work.dtype
    results = (r.logits for r in results_of(job, condition, store) if len(r.rows))
    archive.pieces("logits", (about.n, about.k), dtype, results)
    if labels is not None:
        archive.pieces("labels", (about.n,), np.int64, (labels[rows] for rows in about.blocks()))
    if about.d:
        every = (r.features for r in results_of(job, condition, store))
        archive.pieces("features", (about.n, about.d), dtype, (f for f in every if f is not None))


def around(job: Job, labels: Labels | None, part: tuple[int, int] | None) -> str:
    """A digest of what a scores file holds in addition to the outputs of the model.

    Args:
        job: The job.
        labels: Of all images as columns of the logits, if known.
        part: Which part of how many the file holds; ``None`` for all.
    """
    names = digest_of_names(job.work.images)
    return _digest([digest_of_labels(labels), names, job.work.model.classes, part])


def part_of(job: Job, part: tuple[int, int] | None) -> Part | None:
    """The description of a part; ``None`` if the job is not one.

    Parts may be scored on different machines. They must agree in model, preprocessing and options,
    in number, names and labels of all images, and in the content of a sample of them.
    """
    if part is None:
        return None
    images = job.work.images
    sample = np.unique(np.linspace(0, len(images) - 1, _SAMPLE).astype(np.intp))
    key = _digest(
        {
            "model": job.model_id["fingerprint"],
            "preprocessing": job.model_id["preprocessing"],
            "dtype": job.work.dtype,
            "shard_size": job.shard_size,
            "names": digest_of_names(images),
            "labels": digest_of_labels(images.labels),
            "classes": images.classes,
            "sample": images.digest(sample),
        }
    )
    return Part(*part, *job.span, n_images=len(images), key=key)


def _digest(document: object) -> str:
    text = json.dumps(document, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def write_npz(
    target: Path,
    folder: Path,
    job: Job,
    store: FolderStore,
    *,
    done: Finished,
    part: tuple[int, int] | None,
) -> None:
    """Write the scores file of a finished job of one condition, atomically and in pieces.

    Args:
        target: The file.
        folder: For the unfinished file, on the same disk; removed after a run that was killed.
        job: The job.
        store: Where its shards are.
        done: The finished job.
        part: Which part of how many it is; ``None`` for all.

    Raises:
        FileError: If it cannot be written; finished shards are kept.
    """
    (condition,) = job.conditions
    images, classes = job.work.images, job.work.model.classes
    about = done.outlines[condition]
    origin = {
        "key": job.set_key(condition),
        "around": around(job, done.labels, part),
        "n": about.n,
        "k": about.k,
        "left_out": left_out(job, about.bad),
        **job.origin(),
    }
    unfinished = folder / f"{secrets.token_hex(6)}.npz"
    try:
        with NpzStream(unfinished) as archive:
            write_set(archive, job, condition, store, about=about, labels=done.labels)
            archive.array("origin", text_of(origin))
            if are_named(images):
                width = max((n.dtype.itemsize for n in _names(images, about)), default=4)
                archive.pieces("ids", (about.n,), f"U{width // 4}", _names(images, about))
            if classes is not None:
                archive.array("classes", np.array(classes, np.str_))
            if (described := part_of(job, part)) is not None:
                # From these `merge` makes the origin of the whole.
                whole = around(job, done.labels, None) if about.k else None
                archive.array("part", text_of({**described.to_dict(), "around": whole}))
                keys = [shard.key for shard in job.shards_of(condition)]
                archive.array("shard_keys", np.array(keys, np.bytes_))
                archive.array("shard_images", np.array(job.image_digests(), np.bytes_))
        flush_file(unfinished)
        put_in_place(unfinished, target)
    except OSError as error:
        raise FileError(
            f"{target} could not be written: {error.strerror or error}. Finished shards are kept; "
            "the same command resumes from there."
        ) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    flush_folder(target.parent)


def _names(images: ImageSet, about: Outline) -> Iterator[NDArray[np.str_]]:
    return (np.array(images.ids(block), np.str_) for block in about.blocks())


def text_of(document: Mapping[str, Any]) -> NDArray[np.str_]:
    """A JSON document as an array of an archive."""
    return np.array(json.dumps(document, sort_keys=True), np.str_)


# --------------------------------------------------------------------------------------
# From the arguments of a caller to work.
# --------------------------------------------------------------------------------------

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
    """Work with everything fixed that decides its result.

    Args:
        model: A model, or what :func:`shiftcal.models.as_model` makes one of.
        images: A set of images, or what :func:`shiftcal.datasets.as_image_set` makes one of.
        labels: Their labels, if the set has none.
        seed: Fixes the random numbers of corruptions.
        table: Whose strengths.
        dtype: ``"float32"`` or ``"float16"``.
        notes: Where the batch size is stored if it is found by trial, for later runs.
        before: The batch size of existing scores, used if the model has none.
    """
    model = as_model(model)
    images = with_labels(as_image_set(images), labels, model)
    warn_of_second_resize(model, images)
    seed = check_count(seed, name="seed", least=0, most=2**128)
    table = check_choice(table, ("auto", *TABLES), name="table")
    dtype = check_choice(dtype, ("float32", "float16"), name="dtype")
    size = model.batch_size
    if size is None and before is not None:
        size = check_count(before, name="the batch size of existing scores")
    if size is None:

        def find() -> int:
            return model.size_of_batches(first_images(images, model, _FIRST))

        if model.fingerprint is None:
            size = find()
        else:
            shape = first_images(images, model, 1).shape[1:3]
            preprocessing = model.preprocessing.to_dict()
            key = _digest([model.fingerprint, preprocessing, model.memory_budget, shape])
            size = (notes or Notes()).settled(key, find)
    return Work(model, images, size, seed, table, dtype)


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
    """The folder of the cache; by default that of the variable ``SHIFTCAL_CACHE``, if it is set."""
    path = cache if cache is not None else os.environ.get("SHIFTCAL_CACHE")
    return Path(path) if path else None


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
