"""Shards of a job, known by content, and what a worker does with one."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import re
import secrets
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from shiftcal.checks import as_text, check_choice, plain, to_array
from shiftcal.corruptions import Corruption
from shiftcal.corruptions.corruption import GENERATOR, run
from shiftcal.corruptions.images import check_table, lasting_identity
from shiftcal.datasets import Batch, ImageSet, as_image_set
from shiftcal.datasets.labels import labels_for
from shiftcal.errors import InputError, InputWarning
from shiftcal.models import Model
from shiftcal.models.model import Outputs
from shiftcal.numerics.jit import thread_count
from shiftcal.types import Floats, Images, Labels, Logits

# --------------------------------------------------------------------------------------
# The unit of work: a stretch of the images under one corruption, and what a model gives for it.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """What is done to the images of a set before the model sees them.

    Attributes:
        corruption: The corruption; ``None`` leaves them as they are.
        severity: Its strength; 0 without one.
    """

    corruption: Corruption | None = None
    severity: int = 0

    @property
    def name(self) -> str:
        """What it is called in messages."""
        if self.corruption is None:
            return "clean"
        return f"{self.corruption.name}, severity {self.severity}"


@dataclass(frozen=True)
class Shard:
    """A stretch of the images under one condition.

    Attributes:
        key: A digest of everything that decides its result.
        condition: What is done to the images first.
        start: Index of the first image.
        stop: Index after the last.
    """

    key: str
    condition: Condition
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, eq=False)
class ShardResult:
    """What the model gave for a shard.

    Attributes:
        key: Of the shard.
        rows: Indices of the images, ``(m,)``; those that could not be read are not among them.
        logits: ``(m, k)``.
        features: ``(m, d)``, if they were asked for.
        bad: What was wrong with the images that are not among the rows, by index.
    """

    key: str
    rows: NDArray[np.int64]
    logits: Logits
    features: Floats | None = None
    bad: Mapping[int, str] = field(default_factory=dict)


# --------------------------------------------------------------------------------------
# Doing the next thing while this one is used.
# --------------------------------------------------------------------------------------

T = TypeVar("T")


def ahead(items: Iterable[T], *, depth: int = 2) -> Iterator[T]:
    """The same items in the same order, made by another thread, at most ``depth`` in advance.

    What the making raises is raised here, after the items before it. When this iterator is
    closed, by Ctrl-C or otherwise, the thread ends after the item it is at, and is waited for.
    """
    maker = _Maker(items, depth)
    maker.start()
    try:
        yield from maker.made()
    finally:
        maker.end()


def is_unwanted() -> bool:
    """Whether the thread that asks makes items which nobody waits for any more.

    For items that themselves wait for something: closing the iterator waits for them in turn.
    """
    return getattr(threading.current_thread(), "unwanted", False)


@dataclass(frozen=True)
class _Last:
    """What comes after all items: the end, or an error."""

    error: BaseException | None = None


class _Maker(threading.Thread, Generic[T]):
    """The thread that makes the items."""

    def __init__(self, items: Iterable[T], depth: int) -> None:
        super().__init__(name="shiftcal-ahead", daemon=True)
        self._items = items
        # What is in the queue is bounded by these: one is taken before an item is begun. A
        # semaphore would do, but Ctrl-C inside its release would leave its lock taken for good;
        # putting into this kind of queue cannot be interrupted.
        self._places: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(depth):
            self._places.put(None)
        self._queue: queue.SimpleQueue[T | _Last] = queue.SimpleQueue()
        self.unwanted = False

    def run(self) -> None:
        """Make one item after the other, as long as there is a place for it."""
        try:
            items = iter(self._items)
            while self._may_go_on():
                self._queue.put(next(items))
        except StopIteration:
            self._queue.put(_Last())
        except BaseException as error:  # raised again where the items are used
            self._queue.put(_Last(error))

    def made(self) -> Iterator[T]:
        """The items, each when it is there."""
        while not isinstance(item := self._queue.get(), _Last):
            self._places.put(None)
            yield item
        if item.error is not None:
            raise item.error

    def end(self) -> None:
        """Begin no more items, and wait for the one that is being made."""
        self.unwanted = True
        self._places.put(None)
        self.join()

    def _may_go_on(self) -> bool:
        self._places.get()
        return not self.unwanted


# --------------------------------------------------------------------------------------
# Matrix products of numpy with one thread, so that their bits do not depend on the number.
# --------------------------------------------------------------------------------------

_GUARD = threading.Lock()
_users = 0
_limits: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this process until the last who asked for it leaves.

    A product split between threads is added up in another order, and a result must not depend on
    how many workers there are. Other libraries' threads, such as those of torch and onnxruntime,
    are not concerned.
    """
    global _users, _limits  # noqa: PLW0603
    with _GUARD:
        if _users == 0:
            _limits = threadpool_limits(1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _GUARD:
            _users -= 1
            if _users == 0:
                _limits.restore_original_limits()
                _limits = None


# --------------------------------------------------------------------------------------
# Which sets keep the features that a model gives beside its logits.
# --------------------------------------------------------------------------------------

Features: TypeAlias = Literal["clean", "all", "none"]

# Options of models by which they are asked for features.
_ASKED_BY = ("features_from", "return_features")


def check_which(features: object) -> Features:
    """Which sets keep features: ``"clean"``, ``"all"`` or ``"none"``."""
    found: Features = check_choice(features, get_args(Features), name="features")
    return found


def keeps_features(features: Features, condition: Condition) -> bool:
    """Whether the set of a condition keeps them."""
    return features == "all" or (features == "clean" and condition.corruption is None)


def may_give_features(model: Model) -> bool:
    """Whether a model gives features, as far as that is known before it has run.

    Of a function nothing is known: it may.
    """
    chosen = model._choices()
    said = [chosen[name] for name in _ASKED_BY if name in chosen]
    return not said or any(said)


# --------------------------------------------------------------------------------------
# What a worker does: read, corrupt, preprocess, run the model; one thread ahead of the other.
# --------------------------------------------------------------------------------------

# Bytes of images that are kept, since the next shard is often the same images corrupted otherwise.
KEPT_BYTES = 1 << 28


@dataclass(frozen=True)
class Work:
    """Everything a worker needs; it can be pickled, and called in another process.

    Attributes:
        model: The model.
        images: The images.
        batch_size: Images given to the model at once.
        seed: Fixes the random numbers of the corruptions.
        table: Whose strengths; ``"auto"`` goes by the size of the images.
        dtype: What logits and features are rounded to, ``"float32"`` or ``"float16"``.
        features: Which sets keep the features that the model gives: ``"clean"``, ``"all"`` or
            ``"none"``.
        threads: How many threads read and corrupt images; ``None`` is one for every processor.
        tell: Called after every batch with the key of its shard and how many images of the shard
            are done by then, by whichever thread runs the model. It stays in this process: a copy
            that is pickled has none.
    """

    model: Model
    images: ImageSet
    batch_size: int
    seed: int = 0
    table: str = "auto"
    dtype: str = "float32"
    features: Features = "clean"
    threads: int | None = None
    tell: Callable[[str, int], None] | None = field(default=None, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "tell": None}

    def __call__(self, shards: Iterable[Shard]) -> Generator[ShardResult, None, None]:
        """The results of the shards, in order; the next batch is made while the model runs.

        Raises:
            InputError: If the model fails on a batch; the message names it.
        """
        parts: list[tuple[_Ready, Outputs]] = []
        k: int | None = len(self.model.classes) if self.model.classes else None
        named = k is not None
        with one_blas_thread(), self.model.sharing(self.threads or thread_count()):
            for ready in ahead(self._prepared(shards)):
                if ready.batch is not None:
                    made = self._run(ready, k=k, named=named)
                    k, named = made.logits.shape[1], False
                    parts.append((ready, made))
                if self.tell is not None:
                    self.tell(ready.shard.key, ready.done)
                if ready.last:
                    yield self._finished(ready.shard, parts, ready.bad)
                    parts = []

    def _run(self, ready: _Ready, *, k: int | None, named: bool) -> Outputs:
        assert ready.batch is not None
        first = int(ready.rows[0])
        try:
            return self.model.run(ready.batch, first=first, k=k, named=named)
        except InputError as error:
            condition = ready.shard.condition
            raise InputError(f"{self.images.name}, {condition.name}: {error}") from error

    def _finished(
        self, shard: Shard, parts: list[tuple[_Ready, Outputs]], bad: dict[int, str]
    ) -> ShardResult:
        if not parts:
            return ShardResult(
                shard.key, np.empty(0, np.int64), np.empty((0, 0), self.dtype), None, bad
            )
        where = f"images {shard.start} to {shard.stop - 1} ({shard.condition.name})"
        whole = self.model.joined([made for _, made in parts], where=where, first=shard.start)
        wanted = keeps_features(self.features, shard.condition)
        return ShardResult(
            key=shard.key,
            rows=np.concatenate([ready.rows for ready, _ in parts]).astype(np.int64),
            logits=self._rounded(whole.logits, where),
            features=None
            if whole.features is None or not wanted
            else self._rounded(whole.features, where),
            bad=bad,
        )

    def _rounded(self, values: NDArray[Any], where: str) -> NDArray[Any]:
        with np.errstate(over="ignore"):
            rounded = values.astype(self.dtype, copy=False)
        if not np.isfinite(rounded).all():
            raise InputError(
                f"outputs for {where} reach {np.abs(values).max():.3g}, more than {self.dtype} can "
                "hold. Store them as float32."
            )
        return rounded

    def _prepared(self, shards: Iterable[Shard]) -> Iterator[_Ready]:
        """Batches as the model takes them, shard by shard."""
        size = self.batch_size
        kept = _Kept()
        for shard in shards:
            bad: dict[int, str] = {}
            for start in range(shard.start, shard.stop, size):
                stop = min(start + size, shard.stop)
                batch = kept.read(self, start, stop)
                bad |= batch.bad
                pixels = self._corrupted(batch, shard) if len(batch.indices) else None
                yield _Ready(
                    shard,
                    batch.indices,
                    None if pixels is None else self.model.preprocessing.numbers(pixels),
                    done=stop - shard.start,
                    bad=bad,
                )

    def _corrupted(self, batch: Batch, shard: Shard) -> Images:
        corruption, severity = shard.condition.corruption, shard.condition.severity
        if corruption is None:
            return batch.images
        images = np.ascontiguousarray(batch.images)
        made = np.empty_like(images)
        table = check_table(self.table, *images.shape[1:3])
        threads = self.threads or thread_count()
        # Indices are consecutive but where an image could not be read.
        breaks = np.flatnonzero(np.diff(batch.indices) != 1) + 1
        for piece in np.split(np.arange(len(images)), breaks):
            rows = slice(int(piece[0]), int(piece[-1]) + 1)
            run(
                corruption,
                images[rows],
                made[rows],
                severity=severity,
                table=table,
                seed=self.seed,
                first_index=int(batch.indices[piece[0]]),
                threads=threads,
            )
        return made


@dataclass(frozen=True)
class _Ready:
    """A batch on its way to the model."""

    shard: Shard
    rows: NDArray[np.intp]
    batch: NDArray[Any] | None
    done: int  # images of the shard, with those of this batch
    bad: dict[int, str]

    @property
    def last(self) -> bool:
        return self.done == len(self.shard)


@dataclass
class _Kept:
    """The images that were read last."""

    batches: OrderedDict[tuple[int, int], Batch] = field(default_factory=OrderedDict)
    size: int = 0

    def read(self, work: Work, start: int, stop: int) -> Batch:
        found = self.batches.get((start, stop))
        if found is not None:
            return found
        batch = work.images.read(
            np.arange(start, stop),
            framing=work.model.preprocessing.framing,
            threads=work.threads or thread_count(),
        )
        self.batches[start, stop] = batch
        self.size += batch.images.nbytes
        while self.size > KEPT_BYTES:
            _, gone = self.batches.popitem(last=False)
            self.size -= gone.images.nbytes
        return batch


# --------------------------------------------------------------------------------------
# Names of images, a block at a time: of a million images they take more room than the scores.
# --------------------------------------------------------------------------------------

# Images that are named at once.
BLOCK = 4096


def are_named(images: ImageSet) -> bool:
    """Whether images have names that are more than numbers."""
    return type(images).ids is not ImageSet.ids or "id" in images.fields


def names_of(images: ImageSet, rows: NDArray[np.int64]) -> NDArray[np.str_] | None:
    """Names of images in memory, if they are more than numbers."""
    return np.array(images.ids(rows), np.str_) if are_named(images) else None


def in_blocks(images: ImageSet, blocks: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.str_]]:
    """Names of images, as wide as the longest of each block."""
    for block in blocks:
        yield np.array(images.ids(block), np.str_)


def digest_of_names(images: ImageSet) -> str | None:
    """By which another list of images is noticed; ``None`` if they have numbers only."""
    if not are_named(images):
        return None
    whole = hashlib.blake2b(digest_size=16)
    for start in range(0, len(images), BLOCK):
        names = images.ids(np.arange(start, min(start + BLOCK, len(images))))
        whole.update(json.dumps(names).encode())
    return whole.hexdigest()


# --------------------------------------------------------------------------------------
# Labels of images, as the model's classes.
# --------------------------------------------------------------------------------------

# How ImageNet's folders are called, whatever a model calls its classes.
_WNID = re.compile(r"n[0-9]{8}")

# Labels that are copied at once.
_BLOCK = 1 << 16


class ForeignLabels(InputError):
    """Labels of images are not among the classes of a model, or which are which cannot be told."""


def model_labels(images: ImageSet, model: Model, k: int) -> Labels | None:
    """Labels as columns of the model's logits; ``None`` if the images have none.

    Classes that both the images and the model name are matched by name, whatever their order.
    Names of images that are numbers are columns. Without names on one side, and where the images'
    are identifiers of WordNet such as n01440764, they are matched by their order, and there must be
    equally many.

    Args:
        images: The images.
        model: The model.
        k: Columns of its logits.

    Raises:
        ForeignLabels: If a label is not one of the model's classes.
    """
    if images.labels is None:
        return None
    theirs, ours = images.classes, model.classes
    if theirs is not None:
        if ours is not None and set(theirs) & set(ours):
            return _by_name(images, theirs, ours)
        if all(name.isdecimal() for name in theirs):
            return _in_range(images, np.array([int(name) for name in theirs])[images.labels], k)
        if ours is not None and not all(_WNID.fullmatch(name) for name in theirs):
            return _by_name(images, theirs, ours)
        if len(theirs) != k:
            raise ForeignLabels(
                f"{images.name} has {_listed(theirs)}, and the model {k}, so that which is which "
                "cannot be told. Name the model's classes in the order of its logits "
                "(classes=..., on the command line --classes), or give the images labels by its "
                "columns (labels=..., on the command line --labels FILE)."
            )
    return _in_range(images, images.labels, k)


def _in_range(images: ImageSet, labels: Labels, k: int) -> Labels:
    if labels.max() >= k:
        raise ForeignLabels(
            f"labels of {images.name} must be from 0 to {k - 1}, the columns of the model's "
            f"logits; got {labels.max()}."
        )
    return labels


def digest_of_labels(labels: Labels | None) -> str | None:
    """By which other labels are noticed; ``None`` if there are none."""
    if labels is None:
        return None
    whole = hashlib.blake2b(digest_size=16)
    for start in range(0, len(labels), _BLOCK):
        whole.update(labels[start : start + _BLOCK].astype("<i8").tobytes())
    return whole.hexdigest()


def _by_name(images: ImageSet, theirs: tuple[str, ...], ours: tuple[str, ...]) -> Labels:
    assert images.labels is not None
    column = {name: j for j, name in enumerate(ours)}
    used = [theirs[j] for j in np.unique(images.labels)]
    strange = [name for name in used if name not in column]
    if strange:
        raise ForeignLabels(
            f"{images.name} has images of the class {strange[0]!r}, which is not among the "
            f"model's, {_listed(ours)}. Leave it out, or name the model's classes as the images do "
            "(classes=..., on the command line --classes)."
        )
    columns = np.array([column.get(name, -1) for name in theirs], np.intp)
    matched: Labels = columns[images.labels]
    return matched


def _listed(classes: tuple[str, ...]) -> str:
    many = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
    return f"{many} ({', '.join(classes[:3])}{', ...' if len(classes) > 3 else ''})"


# --------------------------------------------------------------------------------------
# Labels that a caller gives beside the images.
# --------------------------------------------------------------------------------------


def with_labels(images: ImageSet, labels: object, model: Model) -> ImageSet:
    """The images with these labels; names are the images' own classes, or else the model's.

    Args:
        images: The images.
        labels: As for :func:`shiftcal.datasets.as_image_set`; ``None`` leaves those there are.
        model: Whose classes names may be.

    Raises:
        InputError: If they do not fit the images, or a name is none of these classes.
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


# --------------------------------------------------------------------------------------
# Images that were made ready for a network, and a network that would make them ready again.
# --------------------------------------------------------------------------------------


def warn_of_second_resize(model: Model, images: ImageSet) -> None:
    """Warn if a model resizes images that were already brought to the size of a network.

    Warns:
        InputWarning: With how to leave the resizing out.
    """
    side, resize = images.ready_made, model.preprocessing.framing.resize
    if side is None or resize in (None, side, (side, side)):
        return
    to = f"{resize[0]} x {resize[1]}" if isinstance(resize, tuple) else str(resize)
    warnings.warn(
        f"the images of {images.name} were resized and cut to {side} x {side} when they were made, "
        f"and the model's preprocessing resizes them to {to} once more, so that it sees them "
        "larger than it was trained to, and less of them. If that is not meant, take it away: "
        "?resize=none in the spec of the model, or Preprocessing(resize=None, ...).",
        InputWarning,
        stacklevel=4,
    )


# --------------------------------------------------------------------------------------
# A job: a model, images, what is done to them; cut into shards that are known by content.
# --------------------------------------------------------------------------------------

SHARD_SIZE = 1024


class Job:
    """All shards of some images under some conditions.

    The key of a shard is a digest of the model, its engine and preprocessing, the batch size, the
    content of the images, the condition, seed and table, the type of the result, whether features
    are kept where that is not as usual, the version of shiftcal, and that of Pillow where it
    decodes or resizes: of everything that could change a bit of the result, and of nothing else.

    Args:
        work: What is done with each.
        conditions: Conditions of the sets, the clean one first if it is among them.
        shard_size: Images in a shard.
        span: First index and index after the last of the images that are wanted; all by default.
        lasting: Whether results may be used by a later run; a model or a corruption that cannot be
            known again is warned of then.
    """

    def __init__(
        self,
        work: Work,
        conditions: tuple[Condition, ...],
        *,
        shard_size: int = SHARD_SIZE,
        span: tuple[int, int] | None = None,
        lasting: bool = True,
    ) -> None:
        self.work = work
        self.conditions = conditions
        self.shard_size = shard_size
        self.span = span or (0, len(work.images))
        self.model_id = model_identity(work.model, lasting=lasting)
        self._known = {
            corruption: lasting_identity(corruption, lasting=lasting)
            for corruption in dict.fromkeys(c.corruption for c in conditions)
            if corruption is not None
        }
        self._versions = _versions(work)
        self._may_give_features = may_give_features(work.model)
        self._digests: dict[int, str] = {}
        self._guard = threading.Lock()

    @property
    def n_images(self) -> int:
        """Images to be scored, over all conditions."""
        return (self.span[1] - self.span[0]) * len(self.conditions)

    def shards(self) -> Iterator[Shard]:
        """All shards; the same images under all conditions first, since they are read once then."""
        for start in self._starts():
            for condition in self.conditions:
                yield self._shard(condition, start)

    def shards_of(self, condition: Condition) -> Iterator[Shard]:
        """The shards of one set, in the order of the images."""
        for start in self._starts():
            yield self._shard(condition, start)

    def images_digest(self) -> str:
        """A digest of the content of all images that are wanted."""
        whole = hashlib.blake2b(digest_size=16)
        for start in self._starts():
            whole.update(self._digest(start).encode())
        return whole.hexdigest()

    def image_digests(self) -> list[str]:
        """Digests of the content of the images, shard by shard."""
        return [self._digest(start) for start in self._starts()]

    def origin(self) -> dict[str, Any]:
        """How the results were made, as JSON can hold it."""
        model = self.work.model
        return {
            "model": {
                "spec": model.spec,
                "adapter": type(model).__name__,
                **self.model_id,
                "batch_size": self.work.batch_size,
            },
            "images": {"name": self.work.images.name, "digest": self.images_digest()},
            "dtype": self.work.dtype,
            "shard_size": self.shard_size,
        }

    def set_key(self, condition: Condition, *, features: bool | None = None) -> str:
        """A digest of everything that decides the result of a set.

        Args:
            condition: Which set.
            features: Whether it keeps features; ``None`` is what the work says.
        """
        whole = hashlib.blake2b(digest_size=16)
        for start in self._starts():
            whole.update(self._key(condition, start, features=features).encode())
        return whole.hexdigest()

    def _starts(self) -> range:
        return range(*self.span, self.shard_size)

    def _shard(self, condition: Condition, start: int) -> Shard:
        stop = min(start + self.shard_size, self.span[1])
        return Shard(self._key(condition, start), condition, start, stop)

    def _key(self, condition: Condition, start: int, *, features: bool | None = None) -> str:
        work = self.work
        told: dict[str, Any] = {
            "versions": self._versions,
            "model": self.model_id,
            "batch_size": work.batch_size,
            "dtype": work.dtype,
            "images": self._digest(start),
            "first": start,
        }
        corruption = condition.corruption
        if corruption is not None:
            told |= {
                "corruption": self._known.get(corruption) or lasting_identity(corruption),
                "severity": condition.severity,
                "table": work.table,
                "generator": GENERATOR,
            }
            if corruption.random:
                told["seed"] = work.seed
        kept = keeps_features(work.features, condition) if features is None else features
        if self._may_give_features and kept != (corruption is None):
            told["features"] = kept
        text = json.dumps(told, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()

    def _digest(self, start: int) -> str:
        with self._guard:
            found = self._digests.get(start)
            if found is None:
                stop = min(start + self.shard_size, self.span[1])
                found = self.work.images.digest(np.arange(start, stop), threads=thread_count())
                self._digests[start] = found
            return found


def _versions(work: Work) -> dict[str, str]:
    """Versions of what makes the pixels that the model sees; the model names its own engine."""
    found = {"shiftcal": version("shiftcal")}
    stored_as_pixels = work.images._images(np.zeros(1, np.intp)) is not None
    if not stored_as_pixels or work.model.preprocessing.resize is not None:
        with suppress(PackageNotFoundError):  # decoded by something else then
            found["pillow"] = version("pillow")
    return found


def model_identity(model: Model, *, lasting: bool = True) -> dict[str, Any]:
    """What decides the outputs of a model, as JSON can hold it.

    A model without a fingerprint gets a random one, so that nothing of it is ever used again.
    """
    fingerprint = model.fingerprint
    if fingerprint is None:
        if lasting:
            warnings.warn(
                "it cannot be told whether this model is the same as in an earlier run, so that "
                "nothing of this run can be used by a later one. Give the model a name that "
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
