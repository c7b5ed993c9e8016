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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from shiftcal.adaptation.feeds import Feed
from shiftcal.adaptation.network import torch, weights_digest
from shiftcal.adaptation.trainers import Settings
from shiftcal.errors import FileError, FitError, InputError
from shiftcal.files import atomic_write, make_folder, parsing
from shiftcal.progress import Reporting, showing

CHECKPOINT, HISTORY = "checkpoint.safetensors", "history.csv"
PRECISIONS = ("bfloat16", "float16")
_FORMAT, _VERSION = "shiftcal-checkpoint", 3
_MOMENTUM, _BEST = "momentum.", "best."
# Losses are read after so many steps: reading them waits for the device.
_WINDOW = 20
# Rows of the history in all, about, and how often the accuracy is measured.
_ROWS, _ACCURACIES = 100, 20
# Seconds after which a checkpoint is due, whatever the number of steps.
_SECONDS = 300.0


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


class Trained(NamedTuple):
    """A finished training.

    Attributes:
        steps: Steps in all.
        losses: The last row of its history, as JSON can hold it.
        resumed_at: Steps done by earlier calls; 0 if it began with this one.
        images_per_second: Of both domains; 0 if nothing was left to do.
        selected_step: Steps after which the weights were as they are now.
    """

    steps: int
    losses: dict[str, Any]
    resumed_at: int
    images_per_second: float
    selected_step: int


def train(
    objective: Any,
    feed: Feed,
    settings: Settings,
    folder: Path,
    *,
    identity: Mapping[str, Any],
    seed: int = 0,
    device: str = "auto",
    precision: str | None = None,
    checkpoint_every: int = 500,
    validate: Callable[[Any], float] | None = None,
    reporting: Reporting | None = None,
) -> tuple[Trained, list[Row]]:
    """Train a network; it has the selected weights afterwards, and is in evaluation mode.

    After an interruption the same call resumes from the checkpoint in ``folder``. On the same CPU,
    torch and number of threads it gives the same weights to the last bit; on a GPU as nearly as
    torch's deterministic algorithms do.

    Args:
        objective: The network and its loss, new, its weights drawn in a block of :func:`seeded`.
            It is moved to the device.
        feed: Batches by number.
        settings: Of the training.
        folder: Folder of the checkpoint; created if missing.
        identity: Everything that decides the result (data, trainer, settings ...), as JSON.
        seed: Of all random numbers in the steps.
        device: As torch names it, or ``"auto"``.
        precision: Of the forward pass: ``"bfloat16"`` or ``"float16"``; ``None`` is float32.
        checkpoint_every: Steps between two checkpoints; there is one every five minutes too.
        validate: From the classifier, in evaluation mode, to its accuracy on validation images of
            the source: the weights with the best of some twenty accuracies are the result, the
            latest of equals. By default the last weights are.
        reporting: How progress is shown.

    Returns:
        What was done, and how the losses developed.

    Raises:
        FileError: If the folder holds another training or a damaged checkpoint.
        FitError: If the training diverges; the last checkpoint is kept.
    """
    where = resolve_device(device)
    make_folder(folder)
    devices = [where] if where.type == "cuda" else []
    with torch.random.fork_rng(devices), _deterministic(where):
        training = _Training(objective.to(where), settings, folder, seed, precision, identity)
        return training.run(feed, checkpoint_every, validate, reporting or Reporting())


class _Training:
    """A training from its last checkpoint on; the arguments are those of :func:`train`."""

    def __init__(
        self,
        objective: Any,
        settings: Settings,
        folder: Path,
        seed: int,
        precision: str | None,
        identity: Mapping[str, Any],
    ) -> None:
        self.objective, self.settings, self.folder = objective, settings, folder
        self.seed, self.precision = seed, precision
        self.device = next(objective.parameters()).device
        self.identity = {**identity, "device": self.device.type}
        self.optimiser = make_optimiser(objective, settings)
        # Small gradients underflow in float16 unless the loss is scaled.
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=precision == "float16")
        self.step, self.rows = 0, list[Row]()
        self.recent = list[list[float]]()  # losses of the steps since the last row
        self.best: list[Any] | None = None  # step and accuracy
        self.best_weights: dict[str, Any] = {}
        if (folder / CHECKPOINT).exists():
            self._restore()
        self.saved = self.step

    def run(
        self,
        feed: Feed,
        checkpoint_every: int,
        validate: Callable[[Any], float] | None,
        reporting: Reporting,
    ) -> tuple[Trained, list[Row]]:
        """Do the steps that are left."""
        first, last, images = self.step, self.settings.iterations, 0
        began = saved_at = time.monotonic()
        unread: list[Any] = []
        self.objective.train()
        bar = showing("training", last, shown=reporting.shown, line=reporting.line, unit="steps")
        with bar as advance:
            advance(first, kept=True)
            for batch in feed.batches(first, last) if first < last else ():
                unread.append(self._take_step(batch))
                self.step = done = self.step + 1
                images += len(batch.source) + (0 if batch.target is None else len(batch.target))
                row_due, accuracy_due, save_due = (
                    done == last or done % every == 0
                    for every in (-(-last // _ROWS), -(-last // _ACCURACIES), checkpoint_every)
                )
                accuracy_due &= validate is not None
                if not (row_due or accuracy_due or save_due or done % _WINDOW == 0):
                    continue
                advance(len(unread), kept=False)
                self._read_losses(unread)
                if row_due or accuracy_due:
                    self._add_row(validate if accuracy_due else None)
                if save_due or time.monotonic() - saved_at > _SECONDS:
                    self._save()
                    saved_at = time.monotonic()
        if self.best is not None:
            self.objective.load_state_dict(self.best_weights)
        self.objective.eval()
        speed = images / (time.monotonic() - began)
        selected = last if self.best is None else self.best[0]
        return Trained(last, self.rows[-1]._asdict(), first, speed, selected), self.rows

    def _take_step(self, batch: Any) -> Any:
        """The losses of a step: classification, transfer, total."""
        torch.manual_seed(_mixed(_mixed(_mixed(_mixed(self.seed) + 2)) + self.step))
        source, labels, target = (
            None if one is None else one.to(self.device, non_blocking=True) for one in batch
        )
        dtype = getattr(torch, self.precision or "bfloat16")
        with torch.autocast(self.device.type, dtype, enabled=self.precision is not None):
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
        window = torch.stack(unread).double().tolist()
        unread.clear()
        for step, losses in enumerate(window, self.step - len(window) + 1):
            if not all(map(math.isfinite, losses)):
                what = "the loss is {2:.4g} (classification {0:.4g}, transfer {1:.4g})"
                self._diverged(what.format(*losses), step)
        self.recent += window

    def _diverged(self, what: str, step: int) -> None:
        kept = f"The checkpoint of step {self.saved:,} is kept in {self.folder}. "
        raise FitError(
            f"the training diverged: in step {step:,} of {self.settings.iterations:,} {what}, at "
            f"the learning rate {self.settings.lr_at(step - 1):.3g}. {kept if self.saved else ''}"
            "Train into another folder with a smaller lr or trade_off."
        )

    def _add_row(self, validate: Callable[[Any], float] | None) -> None:
        accuracy = None
        if validate is not None:
            self.objective.eval()
            with torch.no_grad():
                accuracy = float(validate(self.objective.classifier))
            self.objective.train()
        means = (sum(losses) / len(losses) for losses in zip(*self.recent, strict=True))
        rate = self.settings.lr_at(self.step - 1)
        classification, transfer, total = means
        self.rows.append(Row(self.step, rate, classification, transfer, total, accuracy))
        self.recent = []
        if accuracy is not None and (self.best is None or accuracy >= self.best[1]):
            self.best = [self.step, accuracy]
            self.best_weights = {n: one.clone() for n, one in self.objective.state_dict().items()}

    def _save(self) -> None:
        """Replace the checkpoint, whole or not at all."""
        from safetensors.torch import save

        momentum = {
            f"{_MOMENTUM}{i}": state["momentum_buffer"]
            for i, state in self.optimiser.state_dict()["state"].items()
            if state.get("momentum_buffer") is not None
        }
        best = {f"{_BEST}{name}": one for name, one in self.best_weights.items()}
        tensors = plain_tensors({**self.objective.state_dict(), **momentum, **best})
        for name, one in tensors.items():
            if one.is_floating_point() and not torch.isfinite(one).all():
                self._diverged(f"{name} becomes NaN or infinite", self.step)
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "identity": self.identity,
            "step": self.step,
            "rows": self.rows,
            "recent": self.recent,
            "best": self.best,
            "scaler": self.scaler.state_dict(),
            "digest": weights_digest(tensors),
        }
        with atomic_write(self.folder / CHECKPOINT) as temporary:
            temporary.write_bytes(save(tensors, {"shiftcal": json.dumps(document)}))
        self.saved = self.step

    def _restore(self) -> None:
        from safetensors import safe_open

        path = self.folder / CHECKPOINT
        with (
            parsing(path, "a checkpoint", fix="Remove it to train from scratch."),
            safe_open(path, framework="pt") as file,
        ):
            document = json.loads((file.metadata() or {})["shiftcal"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if (document["format"], document["version"]) != (_FORMAT, _VERSION):
                raise ValueError(f"it is no {_FORMAT} of version {_VERSION}")
            if document["digest"] != weights_digest(tensors):
                raise ValueError("its digest does not match")
            if differ := differences(document["identity"], self.identity):
                raise FileError(
                    f"{self.folder} holds a checkpoint of another training: {differ}. "
                    "Train into another folder, or remove this one to start from scratch."
                )
            self.step, self.recent = int(document["step"]), document["recent"]
            self.rows = [Row(*row) for row in document["rows"]]
            self.best = document["best"]
            self.scaler.load_state_dict(document["scaler"])
            parts: dict[str, dict[str, Any]] = {_MOMENTUM: {}, _BEST: {}, "": {}}
            for name, one in tensors.items():
                prefix = next(prefix for prefix in parts if name.startswith(prefix))
                parts[prefix][name.removeprefix(prefix)] = one
            self.best_weights = parts[_BEST]
            self.objective.load_state_dict(parts[""])
            momentum = {int(i): {"momentum_buffer": one} for i, one in parts[_MOMENTUM].items()}
            self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": momentum})


def plain_tensors(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Copies on the CPU: safetensors stores no tensor twice, and layers may share one."""
    return {name: one.detach().cpu().clone().contiguous() for name, one in tensors.items()}


def write_history(folder: Path, rows: list[Row]) -> None:
    """Write ``history.csv``; nine digits distinguish all float32 numbers."""
    lines = [",".join(Row._fields)]
    for step, *numbers in rows:
        lines.append(",".join([str(step), *("" if x is None else f"{x:.9g}" for x in numbers)]))
    with atomic_write(folder / HISTORY) as temporary:
        temporary.write_text("\n".join([*lines, ""]), "utf-8")


def read_history(folder: Path) -> list[Row]:
    """The rows of a training.

    Raises:
        FileError: If the file is missing or damaged.
    """
    path = folder / HISTORY
    with parsing(path, "a training's history"), path.open(encoding="utf-8", newline="") as file:
        return [
            Row(int(step), *map(float, losses), float(accuracy) if accuracy else None)  # type: ignore[call-arg]
            for step, *losses, accuracy in list(csv.reader(file))[1:]
        ]


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
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def _mixed(number: int) -> int:
    """A 64-bit number each of whose bits follows from all of the input's (SplitMix64)."""
    mask = 2**64 - 1
    z = (number + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


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
