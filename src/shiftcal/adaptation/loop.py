"""The training loop, its batches and its checkpoint.

A batch is a function of the seed and the step, random changes of images included. A step depends
on its number and the seed only, so a checkpoint of the weights, the optimiser and the step is
enough to resume to the same bytes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation.network import torch
from shiftcal.adaptation.trainers import TRANSFORMS, Settings
from shiftcal.checks import check_choice
from shiftcal.datasets import ImageSet
from shiftcal.errors import FileError, FitError, InputError, ShiftcalError, require
from shiftcal.files import Framing, atomic_write, make_folder, parsing
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.progress import Reporting, showing
from shiftcal.types import Images

# --------------------------------------------------------------------------------------
# Which inputs a step trains on.
# --------------------------------------------------------------------------------------

SOURCE, TARGET = 0, 1
# The random changes have a stream apart from every other one of the same seed.
_STREAM = 0x61_75_67_6D_65_6E_74


class TrainingBatch(NamedTuple):
    """What one step trains on, CPU tensors.

    Attributes:
        source: Inputs of the source, ``(b, ...)``, float32.
        labels: Their classes, ``(b,)``, int64.
        target: Inputs of the target, ``(b, ...)``; ``None`` if the trainer uses none.
    """

    source: Any
    labels: Any
    target: Any


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


class Feed:
    """Batches by number: batch ``t`` is a function of the data, the seed and ``t`` alone.

    Args:
        source: Inputs of the source.
        labels: Their classes, ``(n,)``.
        target: Inputs of the target, or ``None`` if the trainer uses none.
        batch_size: Inputs of each domain in a batch.
        seed: Of the training.
    """

    def __init__(
        self, source: Any, labels: Any, target: Any, *, batch_size: int, seed: int
    ) -> None:
        self._sets = [source] if target is None else [source, target]
        self._labels = torch.as_tensor(np.asarray(labels), dtype=torch.int64)
        self._batch_size, self._seed = batch_size, seed

    def batches(self, first: int, last: int) -> Iterator[TrainingBatch]:
        """Batches ``first`` to ``last - 1``, in order."""
        return map(self.batch, range(first, last))

    def batch(self, step: int) -> TrainingBatch:
        """A batch by its number."""
        rows = [
            indices(len(inputs), step, batch_size=self._batch_size, key=(self._seed, domain))
            for domain, inputs in enumerate(self._sets)
        ]
        source, *rest = (self._read(domain, rows[domain], step) for domain in range(len(rows)))
        labels = self._labels[torch.from_numpy(rows[SOURCE])]
        return TrainingBatch(source, labels, rest[0] if rest else None)

    def _read(self, domain: int, rows: NDArray[np.intp], step: int) -> Any:
        """Inputs of one domain, a tensor."""
        raise NotImplementedError


class ArrayFeed(Feed):
    """Batches of arrays in memory, ``(n, ...)``."""

    def __init__(self, source: Any, labels: Any, target: Any, **options: Any) -> None:
        super().__init__(source, labels, target, **options)
        self._sets = [torch.as_tensor(inputs, dtype=torch.float32) for inputs in self._sets]

    def _read(self, domain: int, rows: NDArray[np.intp], step: int) -> Any:
        return self._sets[domain].index_select(0, torch.from_numpy(rows))


class Transform(NamedTuple):
    """From images as they are stored to training images of one size, still 8-bit.

    Attributes:
        name: Which random changes; ``"none"`` has none.
        side: Height and width after them.
        framing: What is done to every image alike before, as it is read.
    """

    name: str
    side: int
    framing: Framing

    def change(self, image: Images, rng: np.random.Generator) -> Images:
        """A framed image ``(height, width, 3)`` after the random changes."""
        if self.name == "default":
            top, left, height, width = random_box(image.shape[0], image.shape[1], rng)
            part = np.ascontiguousarray(image[top : top + height, left : left + width])
            pillow = require("PIL.Image", extra="images", needed_by="resizing images")
            size, how = (self.side, self.side), pillow.Resampling.BILINEAR
            image = np.asarray(pillow.fromarray(part).resize(size, how))
        elif self.name == "random-crop":
            top, left = (int(rng.integers(size - self.side + 1)) for size in image.shape[:2])
            image = image[top : top + self.side, left : left + self.side]
        if self.name != "none" and rng.random() < 0.5:
            image = image[:, ::-1]
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
    square = side if name == "none" else round(side * 8 / 7)
    centre = side if name == "center-crop" else None
    return Transform(name, side, Framing((square, square), centre, "bicubic"))


def random_box(height: int, width: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """Top, left, height and width of a random part of an image.

    Its area is a uniform part of the image's from 8 %, the logarithm of width over height is
    uniform from 3/4 to 4/3, and so is its place. If ten such rectangles are larger than the image,
    it is the largest one of an allowed proportion at the centre.
    """
    low, high = 3 / 4, 4 / 3
    for _ in range(10):
        area = height * width * rng.uniform(0.08, 1.0)
        drawn = math.exp(rng.uniform(math.log(low), math.log(high)))
        h, w = round(math.sqrt(area / drawn)), round(math.sqrt(area * drawn))
        if 0 < h <= height and 0 < w <= width:
            return int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1)), h, w
    h, w = min(height, round(width / low)), min(width, round(height * high))
    return (height - h) // 2, (width - w) // 2, h, w


class ImageFeed(Feed):
    """Batches of images; the same with any number of workers.

    Args:
        source: Images with labels.
        target: Images of the target, or ``None`` if the trainer uses none.
        transform: Random changes, from :func:`training_transform`.
        preprocessing: Of the network; its ``mean``, ``std`` and ``channels`` are used.
        workers: Processes that prepare batches ahead; 0 is this process.
        **options: ``batch_size`` and ``seed``.
    """

    def __init__(
        self,
        source: ImageSet,
        target: ImageSet | None,
        *,
        transform: Transform,
        preprocessing: Preprocessing,
        workers: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(source, source.labels, target, **options)
        self._transform, self._preprocessing, self._workers = transform, preprocessing, workers

    def batches(self, first: int, last: int) -> Iterator[TrainingBatch]:
        """See :class:`Feed`.

        Raises:
            FileError: If an image cannot be read; the message names it.
        """
        from torch.utils.data import DataLoader

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

    def __getitem__(self, step: int) -> TrainingBatch | ShiftcalError:
        """A batch, or why there is none: DataLoader would bury an error in a traceback."""
        try:
            return self.batch(step)
        except ShiftcalError as error:
            return error

    def _read(self, domain: int, rows: NDArray[np.intp], step: int) -> Any:
        read = self._sets[domain].read(rows, framing=self._transform.framing, threads=1)
        if read.bad:
            raise FileError(
                f"{next(iter(read.bad.values()))} No image is left out of a training silently: fix "
                "or remove it, and start again."
            )
        pixels = read.images
        if self._transform.name != "none":
            # Random numbers of an image: a counter that starts at seed, step, domain and place.
            key = np.array([self._seed, step], np.uint64)
            counters = (np.array([0, i, domain, _STREAM], np.uint64) for i in range(len(rows)))
            draws = (np.random.Generator(np.random.Philox(key=key, counter=c)) for c in counters)
            pixels = np.stack(list(map(self._transform.change, pixels, draws)))
        return torch.from_numpy(self._preprocessing.numbers(pixels))


def _unchanged(batch: Any) -> Any:
    return batch


# --------------------------------------------------------------------------------------
# The loop and its checkpoint.
# --------------------------------------------------------------------------------------

CHECKPOINT = "checkpoint.pt"
# Rows of the history in all, about.
_ROWS = 100
# Seconds after which a checkpoint is due, whatever the number of steps.
_SECONDS = 300.0


class HistoryRow(NamedTuple):
    """Means over the steps since the previous row.

    Attributes:
        step: Steps done.
        lr: Learning rate of the last of them, of what was added to the backbone.
        classification: Cross-entropy on the source.
        transfer: Transfer loss, before ``trade_off``.
        total: What is minimised.
    """

    step: int
    lr: float
    classification: float
    transfer: float
    total: float


def train(
    objective: Any,
    feed: Feed,
    settings: Settings,
    folder: Path,
    *,
    identity: Mapping[str, Any],
    seed: int = 0,
    device: str = "auto",
    checkpoint_every: int = 500,
    reporting: Reporting | None = None,
) -> tuple[list[HistoryRow], int]:
    """Train a network, and leave it in evaluation mode.

    After an interruption the same call resumes from the checkpoint in ``folder``. On the same CPU,
    torch and number of threads it gives the same weights to the last bit; on a GPU it does if torch
    is told to: ``torch.use_deterministic_algorithms(True)``.

    Args:
        objective: The network and its loss, new, its weights drawn in a block of :func:`seeded`.
            It is moved to the device.
        feed: Batches by number.
        settings: Of the training.
        folder: Folder of the checkpoint; created if missing.
        identity: Everything that decides the result (data, trainer, settings ...), as JSON.
        seed: Of all random numbers in the steps.
        device: As torch names it, or ``"auto"``.
        checkpoint_every: Steps between two checkpoints; there is one every five minutes too.
        reporting: How progress is shown.

    Returns:
        How the losses developed, and the steps that earlier calls did.

    Raises:
        FileError: If the folder holds another training or a damaged checkpoint.
        FitError: If the training diverges; the last checkpoint is kept.
    """
    where, last = resolve_device(device), settings.iterations
    make_folder(folder)
    objective.to(where).train()
    optimiser = make_optimiser(objective, settings)
    first, rows, recent = 0, list[HistoryRow](), list[Any]()  # recent: losses since the last row
    if (folder / CHECKPOINT).exists():
        first, rows, recent = _restore(folder, identity, objective, optimiser)
    reporting, saved_at = reporting or Reporting(), time.monotonic()
    bar = showing("training", last, shown=reporting.shown, line=reporting.line, unit="steps")
    devices = [where] if where.type == "cuda" else []
    with bar as advance, torch.random.fork_rng(devices):
        advance(first, kept=True)
        for step, batch in enumerate(feed.batches(first, last), first):
            torch.manual_seed(_mixed(_mixed(_mixed(_mixed(seed) + 2)) + step))
            inputs = (None if x is None else x.to(where, non_blocking=True) for x in batch)
            losses = objective(*inputs, step)
            for group in optimiser.param_groups:
                group["lr"] = settings.lr_at(step) * group["factor"]
            optimiser.zero_grad()
            losses.total.backward()
            optimiser.step()
            recent.append(torch.stack(losses).detach())
            done = step + 1
            row_due, save_due = (
                done == last or done % every == 0 for every in (-(-last // _ROWS), checkpoint_every)
            )
            save_due |= time.monotonic() - saved_at > _SECONDS
            if row_due or save_due:  # reading the losses waits for the device
                total, classification, transfer = _means(recent, done, settings)
            if row_due:
                rate = settings.lr_at(step)
                rows.append(HistoryRow(done, rate, classification, transfer, total))
                advance(len(recent), kept=False)
                recent = []
            if save_due:
                state = {
                    "identity": dict(identity),
                    "step": done,
                    "rows": list(map(list, rows)),
                    "recent": recent,
                    "network": objective.state_dict(),
                    "optimiser": optimiser.state_dict(),
                }
                with atomic_write(folder / CHECKPOINT) as temporary:
                    torch.save(state, temporary)
                saved_at = time.monotonic()
    objective.eval()
    return rows, first


def _means(recent: list[Any], done: int, settings: Settings) -> list[float]:
    """Mean losses of the last steps, which must be finite."""
    losses = torch.stack(recent).double().tolist()
    for step, each in enumerate(losses, done - len(losses) + 1):
        if not all(map(math.isfinite, each)):
            raise FitError(
                f"the training diverged: in step {step:,} of {settings.iterations:,} the loss is "
                f"{each[0]:.4g}, at the learning rate {settings.lr_at(step - 1):.3g}. Train into "
                "another folder with a smaller lr or trade_off."
            )
    return [sum(column) / len(column) for column in zip(*losses, strict=True)]


def _restore(
    folder: Path, identity: Mapping[str, Any], objective: Any, optimiser: Any
) -> tuple[int, list[HistoryRow], list[Any]]:
    """Steps done, rows and losses since the last row; the network is as it was then."""
    path = folder / CHECKPOINT
    device = next(objective.parameters()).device
    with parsing(path, "a checkpoint", fix="Remove it to train from scratch."):
        state = torch.load(path, map_location=device, weights_only=True)
        check_same(folder, state["identity"], identity)
        objective.load_state_dict(state["network"])
        optimiser.load_state_dict(state["optimiser"])
        return state["step"], [HistoryRow(*row) for row in state["rows"]], state["recent"]


def check_same(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise FileError if a folder holds another run than the one that is asked for."""
    names = sorted({*before, *now})
    if differ := [name for name in names if before.get(name) != now.get(name)]:
        raise FileError(
            f"{folder} holds another run: {', '.join(differ)} differ. Pass the same, or name a "
            "new folder."
        )


def make_optimiser(objective: Any, settings: Settings) -> Any:
    """Stochastic gradient descent on two groups: the backbone, and what was added to it."""
    slow = settings.momentum if settings.backbone_momentum is None else settings.backbone_momentum
    groups: list[dict[str, Any]] = [
        {"params": [], "factor": settings.backbone_lr, "momentum": slow},
        {"params": [], "factor": 1.0, "momentum": settings.momentum},
    ]
    for name, parameter in objective.named_parameters():
        if parameter.requires_grad:
            groups[not name.startswith("classifier.backbone.")]["params"].append(parameter)
    for group in groups:
        group["nesterov"] = settings.nesterov and group["momentum"] > 0
    used = [group for group in groups if group["params"]]
    return torch.optim.SGD(used, lr=settings.lr, weight_decay=settings.weight_decay)


def resolve_device(name: str = "auto") -> Any:
    """A device of torch; ``"auto"`` is the GPU if there is one, else the CPU.

    Raises:
        InputError: If torch has no such device here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"device must be one that torch has here; got {name!r}.") from error
    return device


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Initial weights drawn in the block follow from a seed; they must be on the CPU."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_mixed(_mixed(seed) + 1))
        yield


def _mixed(number: int) -> int:
    """A 64-bit number each of whose bits follows from all of the input's (SplitMix64)."""
    mask = 2**64 - 1
    z = (number + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)
