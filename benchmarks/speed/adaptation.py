"""What each trainer costs on frozen features, beside training on the source alone.

Heads on 1,280 features of 800 source and 500 target images of ten classes, made up: time does not
depend on them. The recipe ``frozen``, one thread, the loop that ``shiftcal adapt`` runs with its
checkpoints, nothing else. All trainers in turn, several rounds, the median of each. There are three
loops to compare with, all on the source alone: the one that is written in every tutorial
(``DataLoader``, ``torch.optim.SGD``, ``LambdaLR``; no checkpoints); ours with the same batch, which
sees half the rows in a step that the others do; and ours with twice the batch, which sees as many.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from timing import circumstances, listed, write
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

from shiftcal import adaptation
from shiftcal.adaptation.feeds.arrays import ArrayFeed
from shiftcal.adaptation.network import make_objective
from shiftcal.adaptation.training.loop import Course, train
from shiftcal.adaptation.training.randomness import seeded
from shiftcal.scoring.run import Reporting

ROUNDS = 5
FEATURES, CLASSES = 1280, 10
PLAIN, ALONE, AS_MANY = "plain loop", "source-only", "source-only, twice the batch"
LIMITS = {"dan": 1.3, "jan": 1.3, "mcc": 1.3, "safn": 1.3, "cdan": 2.0, "mdd": 2.0}


def plain(data: dict[str, np.ndarray]) -> float:
    """The source alone, as a tutorial has it."""
    trainer, settings = adaptation.get(ALONE).prepared("frozen")
    torch.manual_seed(0)
    network = make_objective(trainer, None, FEATURES, CLASSES, width=settings.bottleneck).classifier
    tensors = torch.from_numpy(data["source"]), torch.from_numpy(data["labels"])
    began = time.perf_counter()
    loader = DataLoader(
        TensorDataset(*tensors), batch_size=settings.batch_size, shuffle=True, drop_last=True
    )
    optimiser = torch.optim.SGD(
        network.parameters(),
        lr=settings.lr,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=settings.nesterov,
    )
    falling = LambdaLR(optimiser, lambda t: settings.lr_at(t) / settings.lr)
    network.train()
    step = 0
    while step < settings.iterations:
        for features, labels in loader:
            loss = torch.nn.functional.cross_entropy(network(features), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            falling.step()
            step += 1
            if step == settings.iterations:
                break
    return time.perf_counter() - began


def once(name: str, data: dict[str, np.ndarray], folder: Path) -> float:
    if name == PLAIN:
        return plain(data)
    twice = {"batch_size": 64} if name == AS_MANY else {}
    trainer, settings = adaptation.get(name.partition(",")[0]).prepared("frozen", twice)
    with seeded(0):
        objective = make_objective(trainer, None, FEATURES, CLASSES, width=settings.bottleneck)
    feed = ArrayFeed(
        data["source"],
        data["labels"],
        data["target"] if trainer.adapts else None,
        batch_size=settings.batch_size,
        seed=0,
    )
    course = Course(seed=0, device="cpu", reporting=Reporting(shown=False))
    began = time.perf_counter()
    train(objective, feed, settings, folder, course, identity={})
    return time.perf_counter() - began


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    data = {
        "source": rng.random((800, FEATURES), np.float32),
        "labels": rng.integers(0, CLASSES, 800),
        "target": rng.random((500, FEATURES), np.float32),
    }
    names = [PLAIN, ALONE, AS_MANY, *(n for n in adaptation.names() if n != ALONE)]
    found: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(ROUNDS + 1):  # the first is not counted
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                seconds = once(name, data, Path(folder) / "run")
            if turn:
                found[name].append(seconds)
    median = {name: statistics.median(times) for name, times in found.items()}
    facts = {**circumstances(), "rounds": ROUNDS, "median_seconds": median, "seconds": found}
    lines = [
        "# What the trainers cost\n",
        "Heads on frozen features, 1,000 steps of 32 + 32 rows, one thread. The plain loop is the "
        "source alone as a tutorial has it, 32 rows a step; the source alone in our loop has 32 "
        "rows, or 64, which are as many as the trainers see.\n",
        "| trainer | seconds | x plain loop | x source alone | x source alone, 64 rows | goal |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, seconds in median.items():
        ratios = " | ".join(f"{seconds / median[other]:.2f}" for other in (PLAIN, ALONE, AS_MANY))
        lines.append(f"| {name} | {seconds:.2f} | {ratios} | {LIMITS.get(name, '')} |")
    told = {k: v for k, v in facts.items() if k not in ("seconds", "median_seconds")}
    write("adaptation", facts, [], "\n".join([*lines, "", listed(told)]) + "\n")


if __name__ == "__main__":
    main()
