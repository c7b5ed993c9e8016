"""Batches of images that are read, changed at random and normalised as they are needed."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count, to_array
from shiftcal._types import Images
from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.feeds._loading import Loader, Order
from shiftcal.adaptation.feeds._workers import Workers, made
from shiftcal.adaptation.feeds.augment.pipelines import Pipeline
from shiftcal.adaptation.feeds.base import Batch, Feed
from shiftcal.adaptation.feeds.sampling import indices
from shiftcal.datasets.base import ImageSet
from shiftcal.errors import InputError
from shiftcal.models.preprocessing import Preprocessing

# Batches that are being made for each worker, beside the one that is trained on.
_AHEAD = 2


@final
@dataclass(eq=False)
class ImageFeed(Feed):
    """Images from files or wherever a set keeps them.

    What is drawn for an image is a function of the seed, the number of the batch and the image's
    position in it: batches are the same with any number of workers.

    Attributes:
        source: Labelled images.
        labels: Their classes, ``(n,)``.
        target: Images of the target, or ``None`` if the trainer looks at none.
        transform: What is done to them, from :func:`training_transform`.
        preprocessing: Of the network; its ``mean``, ``std`` and ``channels`` are used.
        batch_size: Images of each domain in a batch.
        seed: Of the training.
        rank: Which of ``world`` processes that train together this is.
        world: How many they are; each gets ``batch_size`` images of its own.
        workers: Processes that make batches ahead; with 0 they are made here, as they are asked
            for.
    """

    source: ImageSet
    labels: Any
    target: ImageSet | None
    _: KW_ONLY
    transform: Pipeline
    preprocessing: Preprocessing
    batch_size: int
    seed: int
    rank: int = 0
    world: int = 1
    workers: int = 0

    def __post_init__(self) -> None:
        self.labels = torch.from_numpy(_classes(self.labels, len(self.source)))
        check_count(self.batch_size, name="batch_size")
        check_count(self.workers, name="workers", least=0)
        sets = (self.source,) if self.target is None else (self.source, self.target)
        self._loader = Loader(sets, self.transform, self.seed)
        self._started: Workers | None = None

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """See :class:`Feed`; workers, if any, begin with the first batch and stay.

        Raises:
            FileError: If an image cannot be read; the message names it.
            ShiftcalError: If a worker is gone.
        """
        if self.workers:
            yield from self._from_workers(first, last)
            return
        for step in range(first, last):
            orders = self._orders(step)
            yield self._batch(orders, [self._loader(order) for order in orders])

    def close(self) -> None:
        """End the workers, if any; they come again if more is asked for."""
        if self._started is not None:
            self._started.close()
            self._started = None

    def _from_workers(self, first: int, last: int) -> Iterator[Batch]:
        workers = self._crew()
        ahead: deque[tuple[list[Order], list[Future[Images]]]] = deque()
        for step in range(first, last):
            orders = self._orders(step)
            ahead.append((orders, [workers.ask(order) for order in orders]))
            if len(ahead) > _AHEAD * self.workers:
                yield self._next(ahead)
        while ahead:
            yield self._next(ahead)

    def _next(self, ahead: deque[tuple[list[Order], list[Future[Images]]]]) -> Batch:
        orders, futures = ahead.popleft()
        return self._batch(orders, [made(future) for future in futures])

    def _crew(self) -> Workers:
        if self._started is None:
            self._started = Workers(self._loader, self.workers)
            weakref.finalize(self, self._started.close)
        return self._started

    def _orders(self, step: int) -> list[Order]:
        return [
            Order(step, domain, self.rank * self.batch_size, self._indices(images, step, domain))
            for domain, images in enumerate(self._loader.sets)
        ]

    def _indices(self, images: ImageSet, step: int, domain: int) -> NDArray[np.intp]:
        return indices(
            len(images),
            step,
            batch_size=self.batch_size,
            key=(self.seed, domain),
            rank=self.rank,
            world=self.world,
        )

    def _batch(self, orders: list[Order], images: list[Images]) -> Batch:
        source, *rest = (torch.from_numpy(self.preprocessing.numbers(one)) for one in images)
        labels = self.labels[torch.from_numpy(orders[0].indices)]
        return Batch(source, labels, rest[0] if rest else None)


def _classes(labels: object, n: int) -> NDArray[Any]:
    given = to_array(labels, name="labels")
    if given.shape != (n,) or given.dtype.kind not in "iu" or given.min() < 0:
        raise InputError(
            f"labels must be a class index for each of the {n:,} source images; got shape "
            f"{given.shape} of dtype {given.dtype}."
        )
    return given.astype(np.int64)
