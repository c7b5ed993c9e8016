"""Jobs in shards: a model over images, cut into pieces known by content, each scored once.

A :class:`Job` is a model, images and what is done to them; its shards have keys that are digests
of all that decides their result. :func:`run_job` has an engine score the shards that a
:class:`ShardStore` lacks: this is where a scores file and a bank are resumed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import as_text, check_choice, check_count, plain, to_array
from shiftcal.corruptions import Corruption, corrupt
from shiftcal.corruptions.corruption import GENERATOR, TABLES
from shiftcal.corruptions.images import lasting_identity
from shiftcal.datasets import Batch, ImageSet, as_image_set
from shiftcal.datasets.labels import labels_for
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.files import NpzStream, atomic_write, checksum_of, lock, make_folder, read_npz
from shiftcal.models import Model, as_model
from shiftcal.models.model import Outputs
from shiftcal.numerics.blocks import one_blas_thread, thread_count
from shiftcal.progress import Reporting, showing
from shiftcal.scoring.engines import Engine, LocalEngine
from shiftcal.types import Floats, Images, Labels, Logits

version = cache(metadata.version)  # which reads and parses a file
T = TypeVar("T")

SHARD_SIZE = 1024
# Images whose names are in memory at once: a million names take more room than the scores.
BLOCK = 4096
# Bytes of images kept, since the next shard is often the same images under another corruption.
_KEPT_BYTES = 1 << 28
# Changes with what is in the file of a shard.
_FORMAT = 3
# Images tried to find one that can be read, and named in a warning.
_FIRST, _NAMED = 64, 3
# Names of ImageNet's folders, whatever a model calls its classes.
_WNID = re.compile(r"n[0-9]{8}")


class Condition(NamedTuple):
    """What is done to images before the model sees them.

    Attributes:
        corruption: The corruption; ``None`` leaves them as they are.
        severity: Its severity; 0 without corruption.
    """

    corruption: Corruption | None = None
    severity: int = 0

    @property
    def name(self) -> str:
        """What it is called in messages."""
        if self.corruption is None:
            return "clean"
        return f"{self.corruption.name}, severity {self.severity}"


CLEAN = Condition()


class Shard(NamedTuple):
    """Images ``start`` to ``stop - 1`` under one condition; ``key`` decides the result."""

    key: str
    condition: Condition
    start: int
    stop: int

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"images {self.start} to {self.stop - 1} ({self.condition.name})"


@dataclass(frozen=True, eq=False)
class ShardResult:
    """What the model returned for a shard.

    Attributes:
        key: Of the shard.
        rows: Indices of the images that could be read, ``(m,)``.
        logits: ``(m, k)``.
        features: ``(m, d)``, if the shard keeps them.
        bad: Why other images could not be read, by index.
    """

    key: str
    rows: NDArray[np.int64]
    logits: Logits
    features: Floats | None = None
    bad: Mapping[int, str] = field(default_factory=dict)


def ahead(items: Iterable[T], *, depth: int = 2) -> Iterator[T]:
    """The same items, made by another thread up to ``depth`` in advance."""
    source, end = iter(items), object()
    pool = ThreadPoolExecutor(1, thread_name_prefix="shiftcal-ahead")
    try:
        waiting = deque(pool.submit(next, source, end) for _ in range(depth))
        while (item := waiting.popleft().result()) is not end:
            waiting.append(pool.submit(next, source, end))
            yield item  # type: ignore[misc]
    finally:
        pool.shutdown(cancel_futures=True)


def may_give_features(model: Model) -> bool:
    """Whether a model gives features, as far as its options say; a function may."""
    chosen = model._choices()
    said = [chosen[name] for name in ("features_from", "return_features") if name in chosen]
    return not said or any(said)


class Job:
    """A model, images and what is done to them; called with shards, it gives their results.

    The key of a shard is a digest of the model, its engine and preprocessing, the batch size, the
    content of the images, the condition, seed and table, the type of the result, whether features
    are kept, and the versions of shiftcal and Pillow.

    Args:
        model: A model, or what :func:`shiftcal.models.as_model` makes one of.
        images: Images, or what :func:`shiftcal.datasets.as_image_set` makes a set of.
        labels: Their labels, if the set has none.
        conditions: What is done to them, a set each.
        seed: Fixes the random numbers of the corruptions.
        table: Whose strengths; ``"auto"``: by the size of the images.
        dtype: What logits and features are rounded to.
        features: Which sets keep features: ``"clean"``, ``"all"`` or ``"none"``.
        shard_size: Images per shard.
        part: Which part of how many, from 1: whole shards, so that batches are the same.
        lasting: Whether a later run may use results; warns if it cannot.

    Attributes:
        batch_size: Images per call of the model.
        span: First image and the one after the last.
        threads: Threads that read and corrupt images; ``None``: one per processor.
    """

    def __init__(
        self,
        model: object,
        images: object,
        labels: object = None,
        *,
        conditions: tuple[Condition, ...] = (CLEAN,),
        seed: int = 0,
        table: str = "auto",
        dtype: str = "float32",
        features: str = "clean",
        shard_size: int = SHARD_SIZE,
        part: tuple[int, int] | None = None,
        lasting: bool = True,
    ) -> None:
        self.model = as_model(model)
        self.images = with_labels(as_image_set(images), labels, self.model)
        self.conditions = conditions
        self.seed = check_count(seed, name="seed", least=0, most=2**128)
        self.table = check_choice(table, ("auto", *TABLES), name="table")
        self.dtype: str = check_choice(dtype, ("float32", "float16"), name="dtype")
        self.features = check_choice(features, ("clean", "all", "none"), name="features")
        self.shard_size = check_count(shard_size, name="shard_size")
        self.span = _span(len(self.images), self.shard_size, *(part or (1, 1)))
        self.threads: int | None = None
        _warn_of_second_resize(self.model, self.images)
        self.batch_size = self.model.batch_size or _batch_size(self.model, self.images)
        self.model_id = _model_identity(self.model, lasting=lasting)
        self._known = {
            corruption: lasting_identity(corruption, lasting=lasting)
            for corruption in dict.fromkeys(c.corruption for c in conditions)
            if corruption is not None
        }
        self._versions = {"shiftcal": version("shiftcal")}
        with suppress(PackageNotFoundError):
            self._versions["pillow"] = version("pillow")
        self._digests: dict[int, str] = {}
        self._kept: dict[int, Batch] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.threads is not None:  # in a worker
            self.model.use_threads(self.threads)

    def shards(self, *conditions: Condition) -> Iterator[Shard]:
        """Shards under some conditions, by default all; the same images come one after another."""
        for start in range(*self.span, self.shard_size):
            stop = min(start + self.shard_size, self.span[1])
            for condition in conditions or self.conditions:
                yield Shard(self._key(condition, start), condition, start, stop)

    def keys(self, condition: Condition) -> list[str]:
        """Keys of the shards of a set: digests of everything that decides its result."""
        return [shard.key for shard in self.shards(condition)]

    def origin(self) -> dict[str, Any]:
        """How results were made, for JSON."""
        return {
            "model": {
                "spec": self.model.spec,
                "adapter": type(self.model).__name__,
                **self.model_id,
                "batch_size": self.batch_size,
            },
            "images": {"name": self.images.name},
            "dtype": self.dtype,
            "shard_size": self.shard_size,
        }

    def image_digest(self) -> str:
        """A digest of the content of the images."""
        starts = range(*self.span, self.shard_size)
        return checksum_of({"images": [self._digest(start) for start in starts]})

    def keeps_features(self, condition: Condition) -> bool:
        """Whether the set of a condition keeps features of a model that gives them."""
        return self.features == "all" or (self.features == "clean" and condition == CLEAN)

    def _key(self, condition: Condition, start: int) -> str:
        decides: dict[str, Any] = {
            "format": _FORMAT,
            "versions": self._versions,
            "model": self.model_id,
            "batch_size": self.batch_size,
            "dtype": self.dtype,
            "images": self._digest(start),
            "first": start,
        }
        corruption = condition.corruption
        if corruption is not None:
            decides |= {
                "corruption": self._known.get(corruption) or lasting_identity(corruption),
                "severity": condition.severity,
                "table": self.table,
                "generator": GENERATOR,
            }
            if corruption.random:
                decides["seed"] = self.seed
        if may_give_features(self.model):
            decides["features"] = self.keeps_features(condition)
        return checksum_of(decides)

    def _digest(self, start: int) -> str:
        if start not in self._digests:
            rows = np.arange(start, min(start + self.shard_size, self.span[1]))
            self._digests[start] = self.images.digest(rows, threads=thread_count())
        return self._digests[start]

    def __call__(self, shards: Iterable[Shard]) -> Iterator[ShardResult]:
        """Results in order; the next batch is prepared while the model runs.

        Raises:
            InputError: If the model fails on a batch; the message names it.
        """
        k = len(self.model.classes) if self.model.classes else None
        outputs, batches = list[Outputs](), list[Batch]()
        with one_blas_thread():
            for shard, batch, numbers in ahead(self._prepared(shards)):
                batches.append(batch)
                if numbers is not None:
                    first = int(batch.indices[0])
                    try:
                        made = self.model.run(numbers, first=first, k=k)
                    except InputError as error:
                        where = f"{self.images.name}, {shard.condition.name}"
                        raise InputError(f"{where}: {error}") from error
                    k = made.logits.shape[1]
                    outputs.append(made)
                if sum(len(b.indices) + len(b.bad) for b in batches) == shard.stop - shard.start:
                    yield self._result(shard, batches, outputs)
                    outputs, batches = [], []

    def _result(self, shard: Shard, batches: list[Batch], outputs: list[Outputs]) -> ShardResult:
        rows = np.concatenate([batch.indices for batch in batches]).astype(np.int64)
        bad = {index: why for batch in batches for index, why in batch.bad.items()}
        if not outputs:
            return ShardResult(shard.key, rows, np.empty((0, 0), self.dtype), None, bad)
        made = self.model.joined(outputs, where=shard.name)
        kept = made if self.keeps_features(shard.condition) else made._replace(features=None)
        with np.errstate(over="ignore"):
            rounded = [None if x is None else x.astype(self.dtype, copy=False) for x in kept]
        if not all(x is y or np.isfinite(x).all() for x, y in zip(rounded, kept, strict=True)):  # type: ignore[arg-type]
            raise InputError(
                f"outputs for {shard.name} are more than {self.dtype} can hold. Store them as "
                "float32."
            )
        return ShardResult(shard.key, rows, rounded[0], rounded[1], bad)  # type: ignore[arg-type]

    @property
    def _threads(self) -> int:
        return self.threads or thread_count()

    def _prepared(
        self, shards: Iterable[Shard]
    ) -> Iterator[tuple[Shard, Batch, NDArray[Any] | None]]:
        """Batches as the model takes them, ``None`` if no image of one can be read."""
        for shard in shards:
            for start in range(shard.start, shard.stop, self.batch_size):
                batch = self._read(start, min(start + self.batch_size, shard.stop))
                numbers = None
                if len(batch.indices):
                    pixels = self._corrupted(batch, shard.condition)
                    numbers = self.model.preprocessing.numbers(pixels)
                yield shard, batch, numbers

    def _read(self, start: int, stop: int) -> Batch:
        if start not in self._kept:
            if sum(batch.images.nbytes for batch in self._kept.values()) > _KEPT_BYTES:
                self._kept.clear()
            self._kept[start] = self.images.read(
                np.arange(start, stop),
                framing=self.model.preprocessing.framing,
                threads=self._threads,
            )
        return self._kept[start]

    def _corrupted(self, batch: Batch, condition: Condition) -> Images:
        if condition.corruption is None:
            return batch.images
        # Indices are consecutive except where an image could not be read.
        breaks = np.flatnonzero(np.diff(batch.indices) != 1) + 1
        made = [
            corrupt(
                batch.images[start:stop],
                condition.corruption,
                severity=condition.severity,
                seed=self.seed,
                table=self.table,
                first_index=int(batch.indices[start]),
                threads=self._threads,
            )
            for start, stop in zip([0, *breaks], [*breaks, len(batch.images)], strict=True)
        ]
        return made[0] if len(made) == 1 else np.concatenate(made)


def _model_identity(model: Model, *, lasting: bool) -> dict[str, Any]:
    """What decides the outputs of a model; without a fingerprint, nothing of it is used again."""
    fingerprint = model.fingerprint
    if fingerprint is None:
        if lasting:
            warnings.warn(
                "the model has no key, so later runs cannot reuse its results. Give it one that "
                "changes with it: as_model(..., key='my-model-v1').",
                InputWarning,
                stacklevel=3,
            )
        fingerprint = f"unknown {secrets.token_hex(16)}"
    return {
        "fingerprint": fingerprint,
        "engine": model.engine,
        "output": model.output,
        "preprocessing": model.preprocessing.to_dict(),
    }


class ForeignLabels(InputError):
    """Labels of images do not match the classes of a model."""


def with_labels(images: ImageSet, labels: object, model: Model) -> ImageSet:
    """The images with these labels; names are classes of the images, or else of the model.

    Args:
        images: The images.
        labels: As for :func:`shiftcal.datasets.as_image_set`; ``None`` keeps the images' own.
        model: Whose classes names may be.
    """
    if labels is None:
        return images
    if isinstance(labels, (str, os.PathLike)):
        labels = labels_for(images, labels)
    given = plain(to_array(labels, name="labels"), "labels")
    if given.dtype.kind not in "US":
        return as_image_set(images, labels=given)
    names = set(as_text(given, "labels").ravel().tolist())
    own = images.classes is not None and names <= set(images.classes)
    theirs = not own and names & set(model.classes or ())
    return as_image_set(images, labels=given, classes=model.classes if theirs else None)


def model_labels(images: ImageSet, model: Model, k: int) -> Labels | None:
    """Labels as columns of the model's ``k`` logits; ``None`` if the images have none.

    Classes that both sides name are matched by name. Names that are numbers are columns. Without
    names on one side, and for identifiers of WordNet such as n01440764, order decides.

    Raises:
        ForeignLabels: If a label is not one of the model's classes.
    """
    if images.labels is None or not k:
        return None
    theirs, ours, labels = images.classes, model.classes, images.labels
    if theirs is not None:
        numbered = all(name.isdecimal() for name in theirs)
        wordnet = all(_WNID.fullmatch(name) for name in theirs)
        if ours is not None and (set(theirs) & set(ours) or not (numbered or wordnet)):
            used = [theirs[j] for j in np.unique(labels)]
            if strange := [name for name in used if name not in ours]:
                raise ForeignLabels(
                    f"{images.name} has images of the class {strange[0]!r}, which is not among the "
                    f"model's {len(ours)}, {', '.join(ours[:3])} ... Leave it out, or name the "
                    "model's classes as the images do (classes=..., --classes)."
                )
            column = {name: j for j, name in enumerate(ours)}
            matched: Labels = np.array([column.get(name, -1) for name in theirs], np.intp)[labels]
            return matched
        if numbered:
            labels = np.array([int(name) for name in theirs])[labels]
        elif len(theirs) != k:
            raise ForeignLabels(
                f"{images.name} has {len(theirs)} classes and the model {k}, so they cannot be "
                "matched. Name the model's classes in the order of its logits (classes=..., "
                "--classes), or give labels by its columns (labels=..., --labels FILE)."
            )
    if labels.max() >= k:
        raise ForeignLabels(
            f"labels of {images.name} must be from 0 to {k - 1}, the columns of the model's "
            f"logits; got {labels.max()}."
        )
    return labels


def class_names(images: ImageSet, model: Model, k: int) -> tuple[str, ...] | None:
    """Names of the model's classes: its own, or those of labelled images that order matches."""
    theirs = images.classes
    if model.classes is not None or images.labels is None or theirs is None or len(theirs) != k:
        return model.classes
    return None if all(name.isdecimal() for name in theirs) else theirs


def digest_of_labels(labels: Labels | None) -> str | None:
    """A digest of labels; ``None`` without labels."""
    if labels is None:
        return None
    return hashlib.blake2b(labels.astype("<i8").tobytes(), digest_size=16).hexdigest()


def _span(n: int, size: int, part: int, parts: int) -> tuple[int, int]:
    """The first image of a part, and the one after its last; shards stay whole."""
    of, shards = check_count(parts, name="the number of parts"), -(-n // size)
    which = check_count(part, name="the part", most=of)
    if of > shards:
        raise InputError(
            f"{n:,} images make {shards} shards of {size:,}, too few for {of} parts. Name "
            f"fewer parts, or a shard size of at most {max(1, n // of)}."
        )
    return shards * (which - 1) // of * size, min(n, shards * which // of * size)


def _warn_of_second_resize(model: Model, images: ImageSet) -> None:
    """Warn if a model resizes images that already have the size of a network."""
    side, resize = images.ready_made, model.preprocessing.framing.resize
    if side is None or resize in (None, side, (side, side)):
        return
    warnings.warn(
        f"the images of {images.name} are already {side} x {side}, and the model's preprocessing "
        f"resizes them to {resize} again, so it sees less of them. To avoid "
        "that: ?resize=none in the spec of the model, or Preprocessing(resize=None, ...).",
        InputWarning,
        stacklevel=4,
    )


def _batch_size(model: Model, images: ImageSet) -> int:
    """Images per call, by the size of the first that can be read."""
    for index in range(min(len(images), _FIRST)):
        batch = images.read(np.array([index]), framing=model.preprocessing.framing)
        if len(batch.indices):
            return model.size_of_batches(batch.images)
    reason = next(iter(batch.bad.values()))
    raise InputError(f"none of the images of {images.name} that were tried can be read: {reason}")


class ShardStore:
    """One file per finished shard, written atomically.

    Args:
        folder: Where shards are written; ``None`` keeps them in memory.
        cache: A second folder, which several results share: it is read first, and written to
            instead.
    """

    def __init__(self, folder: Path | None = None, *, cache: Path | None = None) -> None:
        self._folders = [place for place in (cache, folder) if place is not None]
        self._memory: dict[str, ShardResult] = {}

    def get(self, key: str) -> ShardResult | None:
        """The shard; ``None`` if it is missing or damaged."""
        for folder in self._folders:
            with suppress(FileError):
                found = read_npz(_shard_file(folder, key))
                bad = {int(index): why for index, why in json.loads(str(found["bad"])).items()}
                return ShardResult(key, found["rows"], found["logits"], found.get("features"), bad)
        return self._memory.get(key)

    def put(self, result: ShardResult) -> None:
        """Store a shard in the cache, else in the folder, else in memory."""
        if not self._folders:
            self._memory[result.key] = result
            return
        file = _shard_file(self._folders[0], result.key)
        make_folder(file.parent)
        # Not flushed, or the model would wait for the disk: a damaged file is computed again.
        with atomic_write(file, durable=False) as temporary, NpzStream(temporary) as archive:
            archive.array("rows", result.rows)
            archive.array("logits", result.logits)
            if result.features is not None:
                archive.array("features", result.features)
            archive.array("bad", text_of({str(i): why for i, why in sorted(result.bad.items())}))


def _shard_file(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.shard"


def cache_folder(cache: str | os.PathLike[str] | None) -> Path | None:
    """The folder of the cache; default: that of the variable ``SHIFTCAL_CACHE``, if set."""
    path = cache if cache is not None else os.environ.get("SHIFTCAL_CACHE")
    return Path(path) if path else None


@contextmanager
def unfinished_work(folder: Path, result: Path) -> Iterator[Path]:
    """A folder for finished shards of a result, which this process alone works at.

    It is removed when the block is left, unless an error left finished shards in it.

    Raises:
        FileError: If another process is at the same work.
    """
    make_folder(folder)
    with lock(result):
        try:
            yield folder
        except BaseException:
            if not any(folder.rglob("*.shard")):
                shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Finished:
    """A job whose shards are all stored.

    Attributes:
        job: The job.
        store: Where its shards are.
        k: Number of classes; 0 if no image could be read.
        computed: Images that this run scored.
        bad: Why images could not be read, by index.
    """

    job: Job
    store: ShardStore
    k: int = 0
    computed: int = 0
    bad: dict[int, str] = field(default_factory=dict)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Indices of the images that could be read, ``(n,)``."""
        return np.setdiff1d(np.arange(*self.job.span, dtype=np.int64), list(self.bad))

    @property
    def labels(self) -> Labels | None:
        """Labels of all images as columns of the logits, if known."""
        return model_labels(self.job.images, self.job.model, self.k)

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes in the order of the logits, if known."""
        return class_names(self.job.images, self.job.model, self.k)

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """Images that could not be read, for JSON."""
        indices = sorted(self.bad)
        names = self.job.images.ids(indices) if indices else []
        return [
            {"index": index, "id": name, "reason": self.bad[index]}
            for index, name in zip(indices, names, strict=True)
        ]

    def results(self, condition: Condition) -> Iterator[ShardResult]:
        """The shards of a set that have rows, in the order of the images."""
        for key in self.job.keys(condition):
            result = self.store.get(key)
            if result is None:
                raise FileError(
                    "a finished shard was damaged or removed while results were put together. "
                    "The same command computes it again."
                )
            if len(result.rows):
                yield result

    def arrays(self, condition: Condition) -> tuple[Logits, Floats | None]:
        """Logits and features of a set, in memory."""
        results = list(self.results(condition))
        features = [r.features for r in results if r.features is not None]
        logits = np.concatenate([r.logits for r in results])
        return logits, np.concatenate(features) if features else None

    def write_set(self, archive: NpzStream, condition: Condition) -> None:
        """Write logits, labels and features of a set to an archive, one shard at a time."""
        rows, labels, dtype = self.rows, self.labels, self.job.dtype
        logits = (r.logits for r in self.results(condition))
        archive.pieces("logits", (len(rows), self.k), dtype, logits)
        if labels is not None:
            archive.array("labels", labels[rows].astype(np.int64))
        first = next(self.results(condition), None)
        if first is not None and first.features is not None:
            shape = (len(rows), first.features.shape[1])
            features = (r.features for r in self.results(condition) if r.features is not None)
            archive.pieces("features", shape, dtype, features)

    def none_readable(self) -> InputError:
        """The error of a job without any row."""
        return InputError(
            f"none of the {len(self.bad):,} images of {self.job.images.name} could be read. "
            f"The first: {self.bad[min(self.bad)]}"
        )

    def warn_of_bad(self) -> None:
        """Warn of images that could not be read."""
        if self.bad:
            some = "; ".join(self.bad[index].rstrip(".") for index in sorted(self.bad)[:_NAMED])
            more = f"; and {len(self.bad) - _NAMED:,} more" if len(self.bad) > _NAMED else ""
            warnings.warn(
                f"left out {len(self.bad):,} of {len(self.job.images):,} images: {some}{more}.",
                InputWarning,
                stacklevel=3,
            )


def run_job(job: Job, store: ShardStore, engine: Engine | None, reporting: Reporting) -> Finished:
    """Score the shards of a job that the store lacks.

    Raises:
        InputError: If the model fails, labels are not among its classes, or no image can be read;
            finished shards are kept.
        FileError: If results cannot be stored.
    """
    engine = LocalEngine() if engine is None else engine
    if not isinstance(engine, Engine):
        raise InputError(f"engine must be an engine, such as LocalEngine(workers=2); got {engine}.")
    done, pending = Finished(job, store), dict[str, Shard]()
    total = (job.span[1] - job.span[0]) * len(job.conditions)

    def note(shard: Shard, result: ShardResult, *, kept: bool) -> None:
        m, k = result.logits.shape
        if m and done.k not in (0, k):
            raise InputError(
                f"shards of {job.images.name} must all come from one model; they have {done.k} "
                f"classes and {k}. The model has changed and its key has not: give it another key."
            )
        if m and not done.k:
            done.k = k
            model_labels(job.images, job.model, k)  # raises early if labels are not among them
        done.bad |= result.bad
        step(shard.stop - shard.start, kept=kept)

    def missing() -> Iterator[Shard]:
        for shard in job.shards():
            stored = store.get(shard.key)
            if stored is None:
                pending[shard.key] = shard
                yield shard
            else:
                note(shard, stored, kept=True)

    doing = f"scoring {job.images.name}"
    with showing(doing, total, shown=reporting.shown, line=reporting.line) as step:
        for result in engine.map_shards(job, missing()):
            store.put(result)
            note(pending.pop(result.key), result, kept=False)
            done.computed += len(result.rows)
    if not done.k and job.span == (0, len(job.images)):
        raise done.none_readable()
    return done


def are_named(images: ImageSet) -> bool:
    """Whether images have names that are more than numbers."""
    return type(images).ids is not ImageSet.ids or "id" in images.fields


def names_of(images: ImageSet, rows: NDArray[np.int64]) -> NDArray[np.str_] | None:
    """Names of images, if they are more than numbers."""
    return np.array(images.ids(rows), np.str_) if are_named(images) else None


def text_of(document: Mapping[str, Any]) -> NDArray[np.str_]:
    """A JSON document as an array of an archive."""
    return np.array(json.dumps(document, sort_keys=True), np.str_)
