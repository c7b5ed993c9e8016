"""The training loop and its checkpoint: batches in, a trained network out.

A step depends on its number and the seed only, so a checkpoint of the weights, the optimiser and
the step is enough to resume to the same bytes.
"""

from __future__ import annotations

import csv
import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from shiftcal.adaptation.feeds import Feed
from shiftcal.adaptation.losses import torch
from shiftcal.adaptation.trainer import Settings
from shiftcal.checks import check_choice, check_count, check_positive
from shiftcal.errors import FileError, FitError, FitWarning, InputError
from shiftcal.files import atomic_write, make_folder, parsing
from shiftcal.models.model import digest
from shiftcal.scoring.run import Reporting, showing
from shiftcal.scoring.store import alone_in

CHECKPOINT_FILE, HISTORY_FILE = "checkpoint.safetensors", "history.csv"
PRECISIONS = ("bfloat16", "float16")
_FORMAT, _VERSION = "shiftcal-checkpoint", 2
_MOMENTUM, _BEST = "momentum.", "best."
_FIX = "Remove it to train from scratch."
# Losses are read after so many steps: reading them waits for the device.
_WINDOW = 20
# Rows of the history in all, about, and how often the accuracy is measured.
_ROWS, _ACCURACIES = 100, 20


class Row(NamedTuple):
    """Means over the steps since the previous row.

    Attributes:
        step: Steps done.
        lr: Learning rate of the last of them, of what was added to the backbone.
        classification: Cross-entropy on the source.
        transfer: Transfer loss, before ``trade_off``.
        total: What is minimised.
        source_validation: Accuracy on validation images of the source after the step, if measured.
    """

    step: int
    lr: float
    classification: float
    transfer: float
    total: float
    source_validation: float | None = None


@dataclass(frozen=True)
class Course:
    """How a training is run.

    Attributes:
        seed: Decides everything random.
        device: As torch names it, or ``"auto"``.
        precision: Of the forward pass: ``"bfloat16"`` or ``"float16"``; ``None`` is float32.
        checkpoint_every: Steps between two checkpoints.
        checkpoint_seconds: The same in time: whichever comes first.
        select: Which weights are the result: the last, or those with the best accuracy on
            validation images of the source among some twenty moments; the latest of equals.
        reporting: How progress is shown.
    """

    seed: int = 0
    device: str = "auto"
    precision: str | None = None
    checkpoint_every: int = 500
    checkpoint_seconds: float = 300.0
    select: Literal["last", "source-validation"] = "last"
    reporting: Reporting = field(default_factory=Reporting)

    def __post_init__(self) -> None:
        check_count(self.seed, name="seed", least=0, most=2**64 - 1)
        check_count(self.checkpoint_every, name="checkpoint_every")
        check_positive(self.checkpoint_seconds, name="checkpoint_seconds")
        check_choice(self.select, ("last", "source-validation"), name="select")
        if self.precision is not None:
            check_choice(self.precision, PRECISIONS, name="precision")


@dataclass(frozen=True)
class Trained:
    """A finished training.

    Attributes:
        steps: Steps in all.
        losses: The last row of its history.
        resumed_at: Steps done by earlier calls; 0 if it began with this one.
        images_per_second: Of both domains; 0 if nothing was left to do.
        selected_step: Steps after which the weights were as they are now.
    """

    steps: int
    losses: Row
    resumed_at: int
    images_per_second: float
    selected_step: int


def train(
    objective: Any,
    feed: Feed,
    settings: Settings,
    folder: Path,
    course: Course,
    *,
    identity: Mapping[str, Any],
    validate: Callable[[Any], float] | None = None,
) -> Trained:
    """Train a network; it has the selected weights afterwards, and is in evaluation mode.

    After an interruption the same call resumes from the last checkpoint in ``folder``. On the
    same CPU, torch and number of threads it gives the same weights to the last bit; on a GPU as
    nearly as torch's deterministic algorithms do. A second process waits for the first.

    Args:
        objective: The network and its loss, new, its weights drawn in a block of :func:`seeded`.
            It is moved to the device.
        feed: Batches by number.
        settings: Of the training.
        folder: Folder of the checkpoint and the history; created if missing.
        course: How it is run.
        identity: Everything else that decides the result (data, trainer, backbone ...), as JSON.
        validate: From the classifier, in evaluation mode, to its accuracy on validation images of
            the source.

    Raises:
        InputError: If there is no such device, or nothing to select by.
        FileError: If the folder holds another training or a damaged checkpoint, or cannot be
            written to.
        FitError: If the training diverges; the last checkpoint is kept.
    """
    if course.select == "source-validation" and validate is None:
        raise InputError(
            "select='source-validation' needs validation images of the source; pass validate."
        )
    device = resolve_device(course.device)
    identity = plain_json(
        {
            **identity,
            "settings": settings.to_dict(),
            "seed": course.seed,
            "precision": course.precision,
            "device": device.type,
            "select": course.select,
        }
    )
    make_folder(folder)
    devices = [device] if device.type == "cuda" else []
    with alone_in(folder), torch.random.fork_rng(devices), _deterministic(device):
        training = _Training(objective.to(device), settings, folder, course, identity)
        return training.run(feed, validate)


class _Training:
    """A training from its last checkpoint on; the arguments are those of :func:`train`."""

    def __init__(
        self,
        objective: Any,
        settings: Settings,
        folder: Path,
        course: Course,
        identity: dict[str, Any],
    ) -> None:
        self.objective, self.settings, self.course = objective, settings, course
        self.folder, self.identity = folder, identity
        self.device = next(objective.parameters()).device
        self.optimiser = make_optimiser(objective, settings)
        # Small gradients underflow in float16 unless the loss is scaled.
        half = course.precision == "float16"
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=half)
        self.step, self.rows, self.sums, self.since = 0, list[Row](), [0.0, 0.0, 0.0], 0
        self.best: list[Any] | None = None  # step and accuracy
        self.best_weights: dict[str, Any] = {}
        self._saved = self._restore()

    def run(self, feed: Feed, validate: Callable[[Any], float] | None) -> Trained:
        """Do the steps that are left."""
        first, last, began, images = self.step, self.settings.iterations, time.monotonic(), 0
        row_every, validate_every = -(-last // _ROWS), -(-last // _ACCURACIES)
        self.objective.train()
        reporting = self.course.reporting
        with showing(
            "training", last, shown=reporting.shown, line=reporting.line, unit="steps"
        ) as advance:
            advance(first, kept=True)
            unread: list[Any] = []
            saved_at = time.monotonic()
            batches = feed.batches(first, last)
            for batch in batches if first < last else ():
                unread.append(self._take_step(batch))
                self.step = done = self.step + 1
                images += len(batch.source) + (0 if batch.target is None else len(batch.target))
                row_due = done % row_every == 0 or done == last
                accuracy_due = validate is not None and (done % validate_every == 0 or done == last)
                save_due = done % self.course.checkpoint_every == 0 or done == last
                if not (row_due or accuracy_due or save_due or done % _WINDOW == 0):
                    continue
                advance(len(unread), kept=False)
                self._read_losses(unread)
                accuracy = self._accuracy(validate) if accuracy_due else None
                if row_due or accuracy is not None:
                    self._add_row(accuracy)
                overdue = time.monotonic() - saved_at > self.course.checkpoint_seconds
                if save_due or overdue:
                    self._save()
                    saved_at = time.monotonic()
        if self.step < last:
            raise InputError(
                f"the feed must give a batch for each of {last:,} steps; it ended after "
                f"{self.step:,}."
            )
        if self.best is not None:
            self.objective.load_state_dict(self.best_weights)
        self.objective.eval()
        return Trained(
            steps=last,
            losses=self.rows[-1],
            resumed_at=first,
            images_per_second=images / (time.monotonic() - began),
            selected_step=last if self.best is None else self.best[0],
        )

    def _take_step(self, batch: Any) -> Any:
        """The losses of a step: classification, transfer, total."""
        torch.manual_seed(_mixed(_mixed(_mixed(_mixed(self.course.seed) + 2)) + self.step))
        source, labels, target = (
            None if one is None else one.to(self.device, non_blocking=True) for one in batch
        )
        precision = self.course.precision
        dtype = getattr(torch, precision or "bfloat16")
        with torch.autocast(self.device.type, dtype, enabled=precision is not None):
            losses = self.objective(source, labels, target, self.step)
        rate = self.settings.lr_at(self.step)
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["factor"]
        self.optimiser.zero_grad()
        self.scaler.scale(losses.total).backward()
        self.scaler.step(self.optimiser)
        self.scaler.update()
        return torch.stack([losses.classification, losses.transfer, losses.total]).detach()

    def _read_losses(self, unread: list[Any]) -> None:
        first = self.step - len(unread)
        window = torch.stack(unread).double().tolist()
        unread.clear()
        for step, losses in enumerate(window, first):
            if not all(map(math.isfinite, losses)):
                classification, transfer, total = losses
                raise self._diverged(
                    f"in step {step + 1:,} of {self.settings.iterations:,} the loss is "
                    f"{total:.4g} (classification {classification:.4g}, transfer {transfer:.4g})",
                    step,
                )
            self.sums = [total + loss for total, loss in zip(self.sums, losses, strict=True)]
        self.since += len(window)

    def _accuracy(self, validate: Any) -> float:
        self.objective.eval()
        with torch.no_grad():
            accuracy = float(validate(self.objective.classifier))
        self.objective.train()
        return accuracy

    def _add_row(self, accuracy: float | None) -> None:
        classification, transfer, total = (one / self.since for one in self.sums)
        rate = self.settings.lr_at(self.step - 1)
        self.rows.append(Row(self.step, rate, classification, transfer, total, accuracy))
        self.sums, self.since = [0.0, 0.0, 0.0], 0
        if accuracy is None or self.course.select == "last":
            return
        if self.best is None or accuracy >= self.best[1]:
            self.best = [self.step, accuracy]
            state = self.objective.state_dict()
            self.best_weights = {name: one.clone() for name, one in state.items()}

    def _tensors(self) -> dict[str, Any]:
        """Everything the next step depends on, and the best weights so far, by name."""
        momentum = {
            f"{_MOMENTUM}{name}": self.optimiser.state[parameter]["momentum_buffer"]
            for name, parameter in self.objective.named_parameters()
            if self.optimiser.state.get(parameter, {}).get("momentum_buffer") is not None
        }
        best = {f"{_BEST}{name}": one for name, one in self.best_weights.items()}
        # Copies: safetensors stores no tensor twice, and layers may share one.
        tensors = {**self.objective.state_dict(), **momentum, **best}
        return {name: one.detach().cpu().clone().contiguous() for name, one in tensors.items()}

    def _save(self) -> None:
        """Replace the checkpoint, whole or not at all."""
        from safetensors.torch import save

        tensors = self._tensors()
        for name, one in tensors.items():
            if one.is_floating_point() and not torch.isfinite(one).all():
                raise self._diverged(
                    f"after step {self.step:,} of {self.settings.iterations:,} {name} holds NaN "
                    "or infinite numbers",
                    self.step - 1,
                )
        state = {
            "step": self.step,
            "rows": self.rows,
            "sums": self.sums,
            "since": self.since,
            "best": self.best,
            "scaler": self.scaler.state_dict(),
        }
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "torch": str(torch.__version__),
            "identity": self.identity,
            "state": state,
            "digest": _digest(tensors),
        }
        write_history(self.folder, self.rows)
        with atomic_write(self.folder / CHECKPOINT_FILE) as temporary:
            temporary.write_bytes(save(tensors, {"shiftcal": json.dumps(document)}))
        self._saved = self.step

    def _restore(self) -> int:
        """Fill in the checkpoint, if there is one; gives its step."""
        path = self.folder / CHECKPOINT_FILE
        if not path.exists():
            return 0
        document, tensors = read_checkpoint(path)
        with parsing(path, "a checkpoint", fix=_FIX):
            differ = differences(document["identity"], self.identity)
            if differ:
                raise FileError(
                    f"{self.folder} holds a checkpoint of another training: {differ}. "
                    "Train into another folder, or remove this one to start from scratch."
                )
            state = document["state"]
            self.step, self.since = int(state["step"]), int(state["since"])
            self.sums = [float(one) for one in state["sums"]]
            self.rows = [Row(*row) for row in state["rows"]]
            self.best = state["best"]
            self.scaler.load_state_dict(state["scaler"])
            self.best_weights = _named(tensors, _BEST)
            self.objective.load_state_dict(_named(tensors, ""))
            parameters = dict(self.objective.named_parameters())
            for name, one in _named(tensors, _MOMENTUM).items():
                buffer = one.to(self.device)
                self.optimiser.state[parameters[name]]["momentum_buffer"] = buffer
        if document.get("torch") != str(torch.__version__):
            warnings.warn(
                f"the training in {self.folder} began with torch {document.get('torch')} and "
                f"resumes with {torch.__version__}: its weights may differ from those of an "
                "undisturbed run.",
                FitWarning,
                stacklevel=4,
            )
        return self.step

    def _diverged(self, what: str, step: int) -> FitError:
        kept = (
            f"The checkpoint of step {self._saved:,} is kept in {self.folder}."
            if self._saved
            else "There was no checkpoint yet."
        )
        return FitError(
            f"the training diverged: {what}, at the learning rate "
            f"{self.settings.lr_at(step):.3g}. {kept} Train into another folder with a smaller lr "
            "or trade_off."
        )


def read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a checkpoint says of itself, and its tensors by name.

    Raises:
        FileError: If it is missing, damaged or of another version.
    """
    from safetensors import safe_open

    with parsing(path, "a checkpoint", fix=_FIX), safe_open(path, framework="pt") as file:
        document = json.loads((file.metadata() or {})["shiftcal"])
        if (document["format"], document["version"]) != (_FORMAT, _VERSION):
            raise ValueError(f"it is no {_FORMAT} of version {_VERSION}")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if document["digest"] != _digest(tensors):
            raise ValueError("its digest does not match")
        return document, tensors


def _named(tensors: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The tensors with a prefix, without it; with none, those that have none."""
    if not prefix:
        return {n: one for n, one in tensors.items() if not n.startswith((_MOMENTUM, _BEST))}
    return {n.removeprefix(prefix): one for n, one in tensors.items() if n.startswith(prefix)}


def _digest(tensors: Mapping[str, Any]) -> str:
    return digest(
        part
        for name, one in sorted(tensors.items())
        for part in (f"{name} {one.dtype} {tuple(one.shape)}", one.numpy().tobytes())
    )


def weights_digest(module: Any) -> str:
    """A digest of the weights and the layers of a module."""
    return _digest({name: one.detach().cpu() for name, one in module.state_dict().items()})


def write_history(folder: Path, rows: list[Row]) -> None:
    """Write ``history.csv``; nine digits distinguish all float32 numbers."""
    lines = [",".join(Row._fields)]
    for step, *numbers in rows:
        lines.append(",".join([str(step), *("" if x is None else f"{x:.9g}" for x in numbers)]))
    with atomic_write(folder / HISTORY_FILE, durable=False) as temporary:
        temporary.write_text("\n".join([*lines, ""]), "utf-8")


def read_history(folder: Path) -> list[Row]:
    """The rows of a training.

    Raises:
        FileError: If the file is missing or damaged.
    """
    path = folder / HISTORY_FILE
    with parsing(path, "a training's history"), path.open(encoding="utf-8", newline="") as file:
        return [
            Row(int(step), *map(float, losses), float(accuracy) if accuracy else None)  # type: ignore[call-arg]
            for step, *losses, accuracy in list(csv.reader(file))[1:]
        ]


def make_optimiser(objective: Any, settings: Settings) -> Any:
    """Stochastic gradient descent on two groups: the backbone, and what was added to it."""
    backbone, added = list[Any](), list[Any]()
    for name, parameter in objective.named_parameters():
        if parameter.requires_grad:
            (backbone if name.startswith("classifier.backbone.") else added).append(parameter)
    slow = settings.backbone_momentum
    groups = [
        {
            "params": parameters,
            "factor": factor,
            "momentum": momentum,
            "nesterov": settings.nesterov and momentum > 0,
        }
        for parameters, factor, momentum in (
            (backbone, settings.backbone_lr, settings.momentum if slow is None else slow),
            (added, 1.0, settings.momentum),
        )
        if parameters
    ]
    return torch.optim.SGD(groups, lr=settings.lr, weight_decay=settings.weight_decay)


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
        first = str(error).strip().partition("\n")[0]
        raise InputError(
            f"device must be one that torch has here, or 'auto'; got {name!r}: {first}"
        ) from error
    return device


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Initial weights drawn in the block follow from a seed; they must be on the CPU."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_mixed(_mixed(seed) + 1))
        yield


@contextmanager
def _deterministic(device: Any) -> Iterator[None]:
    """Have CUDA compute the same numbers every time, where torch has a way to."""
    if device.type != "cuda" or torch.are_deterministic_algorithms_enabled():
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        torch.backends.cudnn.benchmark = before


def _mixed(number: int) -> int:
    """A 64-bit number each of whose bits follows from all of the input's (SplitMix64)."""
    mask = 2**64 - 1
    z = (number + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def plain_json(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The same as JSON returns it, to compare with what was read."""
    read: dict[str, Any] = json.loads(json.dumps(identity, allow_nan=False, sort_keys=True))
    return read


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between two trainings, in words; empty if nothing does."""
    one, two = dict(_leaves(before)), dict(_leaves(now))
    parts = [
        f"{name} was {one.get(name, 'absent')} and is {two.get(name, 'absent')}"
        for name in sorted({*one, *two})
        if one.get(name) != two.get(name)
    ]
    more = [f"and {len(parts) - 4} more"] if len(parts) > 4 else []
    return "; ".join(parts[:4] + more)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and (value or not name):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, json.dumps(value, sort_keys=True)
