"""Which inputs a step trains on: a function of the seed and the step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation.augment import Pipeline, generator
from shiftcal.adaptation.losses import torch
from shiftcal.checks import check_count
from shiftcal.datasets.image_set import ImageSet
from shiftcal.errors import FileError, InputError, ShiftcalError
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.numerics.jit import thread_count
from shiftcal.types import Images

SOURCE, TARGET = 0, 1
# Images without random changes are kept in memory up to so many bytes of pixels.
_MOST_IN_MEMORY = 1 << 30


class Batch(NamedTuple):
    """What one step trains on, CPU tensors.

    Attributes:
        source: Inputs of the source, ``(b, ...)``, float32.
        labels: Their classes, ``(b,)``, int64.
        target: Inputs of the target, ``(b, ...)``; ``None`` if the trainer uses none.
    """

    source: Any
    labels: Any
    target: Any


class Feed(ABC):
    """Batches by number: batch ``t`` is a function of the data, the seed and ``t`` alone."""

    @abstractmethod
    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """Batches ``first`` to ``last - 1``, in order."""


def indices(n: int, step: int, *, batch_size: int, key: tuple[int, int]) -> NDArray[np.intp]:
    """Images of one domain that step ``step`` trains on, shape ``(batch_size,)``.

    A pass has ``n // batch_size`` steps and leaves out the remaining images, as in the reference
    library. A domain smaller than a batch has its passes joined end to end instead. Every pass has
    its own order: image ``i`` gets word ``i`` of Philox4x64-10 with the key ``(seed, domain)`` and
    the counter ``(0, pass, 0, 1)``, and images are sorted by their words.

    Args:
        n: Images of the domain.
        step: Which step, from 0.
        batch_size: Images in a batch.
        key: Seed and domain, the latter :data:`SOURCE` or :data:`TARGET`.
    """
    if n >= batch_size:
        number, place = divmod(step, n // batch_size)
        first = place * batch_size
        return _order(n, key, number)[first : first + batch_size].copy()
    number, place = divmod(step * batch_size, n)
    passes = -(-(place + batch_size) // n)
    joined = np.concatenate([_order(n, key, number + more) for more in range(passes)])
    return joined[place : place + batch_size].copy()


@lru_cache(maxsize=4)
def _order(n: int, key: tuple[int, int], number: int) -> NDArray[np.intp]:
    counter = np.array([0, number, 0, 1], np.uint64)
    words = np.random.Philox(key=np.array(key, np.uint64), counter=counter).random_raw(n)
    order: NDArray[np.intp] = np.argsort(words, kind="stable")
    return order


class ArrayFeed(Feed):
    """Batches taken from arrays in memory.

    Args:
        source: Inputs of the source, ``(n, ...)``, an array or a tensor.
        labels: Their classes, ``(n,)``.
        target: Inputs of the target, ``(m, ...)``, or ``None``.
        batch_size: Inputs of each domain in a batch.
        seed: Decides the order.
        preprocessing: Of the network, if the inputs are 8-bit images ``(n, height, width, 3)``.

    Raises:
        InputError: If these do not fit together, or are not all finite.
    """

    def __init__(
        self,
        source: Any,
        labels: Any,
        target: Any = None,
        *,
        batch_size: int,
        seed: int,
        preprocessing: Preprocessing | None = None,
    ) -> None:
        images = preprocessing is not None
        self._inputs = [_tensor(source, "source", images=images)]
        self._labels = _classes(labels, len(self._inputs[0]))
        if target is not None:
            self._inputs.append(_tensor(target, "target", images=images))
            ours, theirs = (tuple(inputs.shape[1:]) for inputs in self._inputs)
            if ours != theirs:
                raise InputError(
                    f"source and target must have inputs of one shape; got {ours} and {theirs}."
                )
        self._batch_size = check_count(batch_size, name="batch_size")
        self._seed = check_count(seed, name="seed", least=0, most=2**64 - 1)
        self._preprocessing = preprocessing

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """Batches ``first`` to ``last - 1``, in order."""
        for step in range(first, last):
            rows = [
                torch.from_numpy(
                    indices(
                        len(inputs), step, batch_size=self._batch_size, key=(self._seed, domain)
                    )
                )
                for domain, inputs in enumerate(self._inputs)
            ]
            taken = [
                inputs.index_select(0, some)
                for inputs, some in zip(self._inputs, rows, strict=True)
            ]
            if self._preprocessing is not None:
                taken = [torch.from_numpy(self._preprocessing.numbers(x.numpy())) for x in taken]
            target = taken[TARGET] if len(taken) > 1 else None
            yield Batch(taken[SOURCE], self._labels[rows[SOURCE]], target)


def _tensor(values: Any, name: str, *, images: bool) -> Any:
    """A contiguous CPU tensor, uint8 for images and float32 otherwise."""
    if isinstance(values, torch.Tensor):
        tensor = values.detach().cpu()
    else:
        array: NDArray[Any] = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise InputError(f"{name} must be numbers; got dtype {array.dtype}.")
        # Torch takes no read-only array, such as a memory-mapped one.
        tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
    if tensor.ndim < 2 or not len(tensor):
        raise InputError(
            f"{name} must have a row for each image, shape (n, ...); got {tuple(tensor.shape)}."
        )
    if images:
        return tensor.contiguous()
    if tensor.dtype == torch.uint8:
        raise InputError(f"{name} must be float; got uint8. Scale it, or pass preprocessing.")
    tensor = tensor.to(torch.float32).contiguous()
    if not torch.isfinite(tensor).all():
        raise InputError(f"{name} must be finite; it holds NaN or infinite numbers.")
    return tensor


def _classes(labels: Any, n: int) -> Any:
    array = np.asarray(labels)
    if array.shape != (n,) or array.dtype.kind not in "iu" or array.min() < 0:
        raise InputError(
            f"labels must be a class index from 0 for each of the {n:,} source images; got shape "
            f"{array.shape} of dtype {array.dtype}."
        )
    return torch.from_numpy(array.astype(np.int64))


class ImageFeed(Feed):
    """Batches of images that are read, changed at random and normalised as they are needed.

    What is drawn for an image is a function of the seed, the number of the batch and the image's
    position in it: batches are the same with any number of workers.

    Args:
        source: Labelled images.
        labels: Their classes, ``(n,)``.
        target: Images of the target, or ``None`` if the trainer uses none.
        transform: Random changes, from :func:`training_transform`.
        preprocessing: Of the network; its ``mean``, ``std`` and ``channels`` are used.
        batch_size: Images of each domain in a batch.
        seed: Of the training.
        workers: Processes that prepare batches ahead; 0 is this process.
    """

    def __init__(
        self,
        source: ImageSet,
        labels: Any,
        target: ImageSet | None,
        *,
        transform: Pipeline,
        preprocessing: Preprocessing,
        batch_size: int,
        seed: int,
        workers: int = 0,
    ) -> None:
        check_count(batch_size, name="batch_size")
        self._labels = _classes(labels, len(source))
        self._preprocessing = preprocessing
        self._workers = check_count(workers, name="workers", least=0)
        sets = (source,) if target is None else (source, target)
        self._loader = _Loader(sets, transform, batch_size, seed)

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """See :class:`Feed`.

        Raises:
            FileError: If an image cannot be read; the message names it.
            ShiftcalError: If a worker dies.
        """
        from torch.utils.data import DataLoader

        steps = range(first, last)
        loaded: Any = DataLoader(
            self._loader,  # type: ignore[arg-type]  # has what a Dataset needs
            batch_size=None,
            sampler=steps,
            num_workers=self._workers,
            collate_fn=_unchanged,
        )
        for step, images in zip(steps, self._watched(loaded), strict=True):
            if isinstance(images, ShiftcalError):
                raise images
            source, *rest = (torch.from_numpy(self._preprocessing.numbers(x)) for x in images)
            labels = self._labels[torch.from_numpy(self._loader.rows(step, SOURCE))]
            yield Batch(source, labels, rest[0] if rest else None)

    def _watched(self, loaded: Any) -> Iterator[Any]:
        try:
            yield from loaded
        except RuntimeError as error:
            if not self._workers or "worker" not in str(error):
                raise
            raise ShiftcalError(
                "a worker that reads images died. The likely cause is memory: use fewer workers; "
                f"with workers=0 images are read in this process. {' '.join(str(error).split())}"
            ) from error


def _unchanged(images: Any) -> Any:
    return images


class _Loader:
    """The images of a batch by its number, as torch's DataLoader takes it."""

    def __init__(
        self, sets: tuple[ImageSet, ...], pipeline: Pipeline, batch_size: int, seed: int
    ) -> None:
        self.sets, self.pipeline, self.batch_size, self.seed = sets, pipeline, batch_size, seed

    def rows(self, step: int, domain: int) -> NDArray[np.intp]:
        """Which images of a domain are in a batch."""
        n = len(self.sets[domain])
        return indices(n, step, batch_size=self.batch_size, key=(self.seed, domain))

    def __getitem__(self, step: int) -> list[Images] | ShiftcalError:
        """Images ``(b, height, width, 3)`` of each domain, uint8; or why there are none.

        An error is returned, not raised: DataLoader would bury its message in a traceback.
        """
        try:
            return [self._images(step, domain) for domain in range(len(self.sets))]
        except ShiftcalError as error:
            return error

    def _images(self, step: int, domain: int) -> Images:
        images = read_images(self.sets[domain], self.rows(step, domain), self.pipeline)
        draws = [
            generator(self.seed, step=step, domain=domain, position=i) for i in range(len(images))
        ]
        return self.pipeline.of_images(images, draws)


def read_images(
    images: ImageSet, rows: NDArray[np.intp], pipeline: Pipeline, threads: int = 1
) -> Images:
    """Framed images, before random changes.

    Raises:
        FileError: If one cannot be read.
    """
    read = images.read(rows, framing=pipeline.framing, threads=threads)
    if read.bad:
        raise FileError(
            f"{next(iter(read.bad.values()))} No image is left out of a training silently: fix or "
            "remove it, and start again."
        )
    return read.images


def image_feed(
    source: ImageSet,
    target: ImageSet | None,
    *,
    transform: Pipeline,
    side: int | None,
    preprocessing: Preprocessing,
    workers: int,
    batch_size: int,
    seed: int,
) -> Feed:
    """Batches of images; from memory if nothing random is done to them and they are small.

    Args:
        source: With labels.
        target: Or ``None``.
        transform: Random changes.
        side: Height and width of the images after them, if known.
        preprocessing: Of the network.
        workers: Processes that read images.
        batch_size: Images of each domain in a batch.
        seed: Of the training.
    """
    n = len(source) + (0 if target is None else len(target))
    if transform.steps or side is None or n * 3 * side**2 > _MOST_IN_MEMORY:
        return ImageFeed(
            source,
            source.labels,
            target,
            transform=transform,
            preprocessing=preprocessing,
            batch_size=batch_size,
            seed=seed,
            workers=workers,
        )
    pixels = [
        None if one is None else read_images(one, np.arange(len(one)), transform, thread_count())
        for one in (source, target)
    ]
    return ArrayFeed(
        pixels[0],
        source.labels,
        pixels[1],
        batch_size=batch_size,
        seed=seed,
        preprocessing=preprocessing,
    )
