"""Which inputs a step trains on: a function of the seed and the step.

Random changes of images too, so a batch is the same whatever came before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation.network import torch
from shiftcal.adaptation.trainers import TRANSFORMS
from shiftcal.checks import check_choice, check_count
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.errors import FileError, ShiftcalError, require
from shiftcal.files import Framing
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.numerics.jit import thread_count
from shiftcal.types import Images

SOURCE, TARGET = 0, 1
# Images without random changes are kept in memory up to so many bytes of pixels.
_MOST_IN_MEMORY = 1 << 30
# The random changes have a stream apart from every other one of the same seed.
_STREAM = 0x61_75_67_6D_65_6E_74


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


class Feed(Protocol):
    """Batches by number: batch ``t`` is a function of the data, the seed and ``t`` alone."""

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


class ArrayFeed:
    """Batches of arrays in memory.

    Args:
        source: Inputs of the source, ``(n, ...)``.
        labels: Their classes, ``(n,)``.
        target: Inputs of the target, ``(m, ...)``, or ``None``.
        batch_size: Inputs of each domain in a batch.
        seed: Decides the order.
    """

    def __init__(
        self, source: Any, labels: Any, target: Any, *, batch_size: int, seed: int
    ) -> None:
        arrays = (source,) if target is None else (source, target)
        self._inputs = [torch.as_tensor(one, dtype=torch.float32) for one in arrays]
        self._labels = torch.as_tensor(labels, dtype=torch.int64)
        self._batch_size, self._seed = batch_size, seed

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """See :class:`Feed`."""
        for step in range(first, last):
            rows = [
                torch.from_numpy(
                    indices(len(inputs), step, batch_size=self._batch_size, key=(self._seed, i))
                )
                for i, inputs in enumerate(self._inputs)
            ]
            source, *rest = (x.index_select(0, r) for x, r in zip(self._inputs, rows, strict=True))
            yield Batch(source, self._labels[rows[SOURCE]], rest[0] if rest else None)


# --------------------------------------------------------------------------------------
# Images: read, changed at random and normalised as they are needed.
# --------------------------------------------------------------------------------------

RandomStep: TypeAlias = Callable[[Images, np.random.Generator], Images]


class Transform(NamedTuple):
    """From images as they are stored to images of one size, still 8-bit.

    Attributes:
        framing: What is done to every image alike, as it is read.
        steps: Random changes of an image, in this order.
    """

    framing: Framing
    steps: tuple[RandomStep, ...] = ()

    def change(self, image: Images, rng: np.random.Generator) -> Images:
        """A framed image ``(height, width, 3)`` after the random changes."""
        for step in self.steps:
            image = step(image, rng)
        return image


def training_transform(name: str, side: int) -> Transform:
    """What the reference library does to training images.

    All but ``"none"`` first bring the whole image to a square of 8/7 of the side, whatever its
    proportion (256 for 224), and flip it in half of the cases at the end. Resizing is Pillow's,
    with antialiasing, as there: bicubic for that square, which is Pillow's default, and bilinear
    for the random part.

    Args:
        name: ``"default"``, a random part of the square, resized; ``"center-crop"``, its centre, as
            for VisDA; ``"random-crop"``, a part of the final size, as for SAFN; ``"none"``, the
            whole image resized to the side, as for digits.
        side: What the network takes, in pixels.

    Raises:
        UnknownName: If there is no such name.
    """
    check_choice(name, TRANSFORMS, name="transform")
    check_count(side, name="side", least=8)
    if name == "none":
        return Transform(Framing((side, side), interpolation="bicubic"))
    square = round(side * 8 / 7)
    centre = side if name == "center-crop" else None
    steps: dict[str, tuple[RandomStep, ...]] = {
        "default": (partial(random_resized_crop, side=side), flip),
        "center-crop": (flip,),
        "random-crop": (partial(random_crop, side=side), flip),
    }
    return Transform(Framing((square, square), centre, "bicubic"), steps[name])


def flip(image: Images, rng: np.random.Generator) -> Images:
    """The mirror image, in half of the cases."""
    return image[:, ::-1] if rng.random() < 0.5 else image


def random_crop(image: Images, rng: np.random.Generator, *, side: int) -> Images:
    """A square whose place is uniform among those inside the image, which is at least as large."""
    top, left = (int(rng.integers(size - side + 1)) for size in image.shape[:2])
    return image[top : top + side, left : left + side]


def random_resized_crop(image: Images, rng: np.random.Generator, *, side: int) -> Images:
    """A part of the image, cut out first and then resized to a square, as :func:`random_box`."""
    top, left, height, width = random_box(image.shape[0], image.shape[1], rng)
    part = np.ascontiguousarray(image[top : top + height, left : left + width])
    pillow = require("PIL.Image", extra="images", needed_by="resizing images")
    return np.asarray(pillow.fromarray(part).resize((side, side), pillow.Resampling.BILINEAR))


def random_box(
    height: int,
    width: int,
    rng: np.random.Generator,
    *,
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
) -> tuple[int, int, int, int]:
    """Top, left, height and width of a random part of an image.

    Its area is a uniform part of the image's, the logarithm of width over height is uniform, and
    so is its place. If ten such rectangles are larger than the image, it is the largest one of an
    allowed proportion at the centre.
    """
    low, high = ratio
    for _ in range(10):
        area = height * width * rng.uniform(*scale)
        drawn = math.exp(rng.uniform(math.log(low), math.log(high)))
        h, w = round(math.sqrt(area / drawn)), round(math.sqrt(area * drawn))
        if 0 < h <= height and 0 < w <= width:
            return int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1)), h, w
    h, w = min(height, round(width / low)), min(width, round(height * high))
    return (height - h) // 2, (width - w) // 2, h, w


def generator(seed: int, *, step: int, domain: int, position: int) -> np.random.Generator:
    """Random numbers for one image of a batch: a counter that starts at these four numbers."""
    key = np.array([seed, step], np.uint64)
    counter = np.array([0, position, domain, _STREAM], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


class ImageFeed:
    """Batches of images; the same with any number of workers.

    Args:
        source: Images with labels.
        target: Images of the target, or ``None`` if the trainer uses none.
        transform: Random changes, from :func:`training_transform`.
        preprocessing: Of the network; its ``mean``, ``std`` and ``channels`` are used.
        batch_size: Images of each domain in a batch.
        seed: Of the training.
        workers: Processes that prepare batches ahead; 0 is this process.
        side: Height and width after the transform, if known: without random changes, images are
            kept in memory if they are small.
    """

    def __init__(
        self,
        source: ImageSet,
        target: ImageSet | None,
        *,
        transform: Transform,
        preprocessing: Preprocessing,
        batch_size: int,
        seed: int,
        workers: int = 0,
        side: int | None = None,
    ) -> None:
        self._labels = torch.as_tensor(np.asarray(source.labels), dtype=torch.int64)
        self._preprocessing, self._workers = preprocessing, workers
        self._sets, self._transform = [source] if target is None else [source, target], transform
        self._batch_size, self._seed = batch_size, seed
        pixels = sum(map(len, self._sets)) * 3 * (side or math.inf) ** 2
        if not transform.steps and pixels <= _MOST_IN_MEMORY:
            everything = (
                self._read(one, np.arange(len(one)), thread_count()) for one in self._sets
            )
            self._sets, self._workers = list(map(as_image_set, everything)), 0
            self._transform = Transform(Framing())

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """See :class:`Feed`.

        Raises:
            FileError: If an image cannot be read; the message names it.
            ShiftcalError: If a worker dies.
        """
        from torch.utils.data import DataLoader

        try:
            for batch in DataLoader(
                self,  # type: ignore[arg-type]  # has what a Dataset needs
                batch_size=None,
                sampler=range(first, last),
                num_workers=self._workers,
                collate_fn=_unchanged,
            ):
                if isinstance(batch, ShiftcalError):
                    raise batch
                yield batch
        except RuntimeError as error:
            if not self._workers or "worker" not in str(error):
                raise
            raise ShiftcalError(
                "a worker that reads images died. The likely cause is memory: use fewer workers; "
                f"with workers=0 images are read in this process. {' '.join(str(error).split())}"
            ) from error

    def __getitem__(self, step: int) -> Batch | ShiftcalError:
        """A batch by its number, as torch's DataLoader takes it; or why there is none.

        An error is returned, not raised: DataLoader would bury its message in a traceback.
        """
        inputs, labels = [], None
        try:
            for domain, images in enumerate(self._sets):
                key = (self._seed, domain)
                rows = indices(len(images), step, batch_size=self._batch_size, key=key)
                labels = self._labels[torch.from_numpy(rows)] if domain == SOURCE else labels
                pixels = self._read(images, rows)
                if self._transform.steps:
                    draws = (
                        generator(self._seed, step=step, domain=domain, position=position)
                        for position in range(len(rows))
                    )
                    pixels = np.stack(list(map(self._transform.change, pixels, draws)))
                inputs.append(torch.from_numpy(self._preprocessing.numbers(pixels)))
        except ShiftcalError as error:
            return error
        return Batch(inputs[SOURCE], labels, inputs[TARGET] if len(inputs) > 1 else None)

    def _read(self, images: ImageSet, rows: NDArray[np.intp], threads: int = 1) -> Images:
        """Framed images, before random changes."""
        read = images.read(rows, framing=self._transform.framing, threads=threads)
        if read.bad:
            raise FileError(
                f"{next(iter(read.bad.values()))} No image is left out of a training silently: fix "
                "or remove it, and start again."
            )
        return read.images


def _unchanged(batch: Any) -> Any:
    return batch
