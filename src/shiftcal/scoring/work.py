"""What a worker does: read, corrupt, preprocess, run the model; one thread ahead of the other."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images
from shiftcal.corruptions._corrupt import check_table
from shiftcal.corruptions._engine import run
from shiftcal.datasets import Batch, ImageSet
from shiftcal.errors import InputError
from shiftcal.models import Model
from shiftcal.models.base import Outputs
from shiftcal.numerics._threads import thread_count
from shiftcal.scoring.ahead import ahead
from shiftcal.scoring.kept_features import Features, keeps_features
from shiftcal.scoring.one_blas_thread import one_blas_thread
from shiftcal.scoring.shard import Shard, ShardResult

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

    def with_threads(self, threads: int) -> Work:
        """The same work for a worker that may use so many threads."""
        return replace(self, threads=threads)

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
