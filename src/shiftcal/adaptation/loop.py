"""The training loop and its checkpoint: batches in, a trained network out.

A step depends on its number and the seed only, so a checkpoint of the weights, the optimiser and
the step is enough to resume to the same bytes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from shiftcal.adaptation.feeds import Feed
from shiftcal.adaptation.network import torch
from shiftcal.adaptation.trainers import Settings
from shiftcal.errors import FileError, FitError, InputError
from shiftcal.files import atomic_write, make_folder, parsing
from shiftcal.progress import Reporting, showing

CHECKPOINT = "checkpoint.pt"
# Rows of the history in all, about.
_ROWS = 100
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
) -> tuple[list[Row], int]:
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
    first, rows, recent = 0, list[Row](), list[Any]()  # recent: losses since the last row
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
                rows.append(Row(done, rate, classification, transfer, total))
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
) -> tuple[int, list[Row], list[Any]]:
    """Steps done, rows and losses since the last row; the network is as it was then."""
    path = folder / CHECKPOINT
    device = next(objective.parameters()).device
    with parsing(path, "a checkpoint", fix="Remove it to train from scratch."):
        state = torch.load(path, map_location=device, weights_only=True)
        check_same(folder, state["identity"], identity)
        objective.load_state_dict(state["network"])
        optimiser.load_state_dict(state["optimiser"])
        return state["step"], [Row(*row) for row in state["rows"]], state["recent"]


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
