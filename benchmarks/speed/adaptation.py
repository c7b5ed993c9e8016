"""What each trainer costs on frozen features, beside training on the source alone.

Heads on 1,280 features of 800 source and 500 target images of ten classes, made up: time does not
depend on them. The recipe ``frozen``, with as many threads as torch takes by itself, which is what
``shiftcal train`` uses, and then with one; the loop that ``shiftcal train`` runs with its
checkpoints, nothing else. There are three loops to compare with, all on the source alone: the one
that is written in every tutorial (``DataLoader``, ``torch.optim.SGD``, ``LambdaLR``; no
checkpoints); ours with the same batch, which sees half the rows in a step that the others do; and
ours with twice the batch, which sees as many.

A machine that others use too may be half as fast from one second to the next. So the plain loop is
run along with every training: after each 20 iterations of the one come 20 of the other, with a
clock for each. A ratio is the median of several rounds; the least and the largest are told as well.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from timing import run
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

from shiftcal import adaptation
from shiftcal.adaptation.loop import ArrayFeed, Feed, TrainingBatch, seeded, train
from shiftcal.adaptation.network import Objective
from shiftcal.progress import Reporting

ROUNDS, SLICE = 5, 20
FEATURES, CLASSES = 1280, 10
PLAIN, ALONE, AS_MANY = "plain loop", "source-only", "source-only, twice the batch"


def plain(data: dict[str, np.ndarray]) -> Iterator[None]:
    """The source alone, as a tutorial has it; stops before all and after slices of iterations."""
    trainer, settings = adaptation.get(ALONE).prepared("frozen")
    made = Objective(trainer, None, FEATURES, CLASSES, width=settings.bottleneck).classifier
    network = torch.nn.Sequential(made.bottleneck, made.head)
    yield
    tensors = torch.from_numpy(data["source"]), torch.from_numpy(data["labels"])
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
            if step % SLICE == 0:
                yield
            if step == settings.iterations:
                break


class Along(Feed):
    """Gives the batches of a feed, and between slices of them lets another loop go on.

    Attributes:
        seconds: What the other loop has taken.
    """

    def __init__(self, feed: Feed, other: Iterator[None]) -> None:
        self._feed, self._other = feed, other
        self.seconds = 0.0
        next(other)  # its network, as ours, is made before the clock runs

    def batches(self, first: int, last: int) -> Iterator[TrainingBatch]:
        """The feed's own."""
        for step, batch in enumerate(self._feed.batches(first, last), start=first):
            if step % SLICE == 0:
                began = time.perf_counter()
                next(self._other)
                self.seconds += time.perf_counter() - began
            yield batch


def once(name: str, data: dict[str, np.ndarray]) -> tuple[float, float]:
    """Seconds of a training, and of the plain loop that was run along with it."""
    twice = {"batch_size": 64} if name == AS_MANY else {}
    trainer, settings = adaptation.get(name.partition(",")[0]).prepared("frozen", twice)
    with seeded(0):
        objective = Objective(trainer, None, FEATURES, CLASSES, width=settings.bottleneck)
    feed = ArrayFeed(
        data["source"],
        data["labels"],
        data["target"] if trainer.adapts else None,
        batch_size=settings.batch_size,
        seed=0,
    )
    both = Along(feed, plain(data))
    quietly = {"device": "cpu", "reporting": Reporting(shown=False)}
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        train(objective, both, settings, Path(folder) / "run", identity={}, **quietly)
        took = time.perf_counter() - began
    return took - both.seconds, both.seconds


def compared(data: dict[str, np.ndarray]) -> dict[str, dict[str, list[float]]]:
    """Seconds of every loop, and what they are times the plain loop's, round by round."""
    names = [ALONE, AS_MANY, *(n for n in adaptation.names() if n != ALONE)]
    seconds: dict[str, list[float]] = {name: [] for name in (PLAIN, *names)}
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(ROUNDS + 1):  # the first is not counted
        for name in names:
            took, along = once(name, data)
            if turn:
                seconds[PLAIN].append(along)
                seconds[name].append(took)
                times[name].append(took / along)
    return {"seconds": seconds, "times_plain": times}


def table(found: dict[str, dict[str, list[float]]]) -> list[str]:
    seconds = {name: statistics.median(each) for name, each in found["seconds"].items()}
    times = {name: statistics.median(each) for name, each in found["times_plain"].items()}
    lines = [
        "| trainer | seconds | x plain loop | x source alone | x source alone, 64 rows |",
        "|---|--:|--:|--:|--:|",
        f"| {PLAIN} | {seconds[PLAIN]:.2f} | 1.00 | {1 / times[ALONE]:.2f} | "
        f"{1 / times[AS_MANY]:.2f} |",
    ]
    for name, each in found["times_plain"].items():
        spread = f"{times[name]:.2f} ({min(each):.2f} to {max(each):.2f})"
        others = " | ".join(f"{times[name] / times[other]:.2f}" for other in (ALONE, AS_MANY))
        lines.append(f"| {name} | {seconds[name]:.2f} | {spread} | {others} |")
    return lines


def rounds() -> dict[int, dict[str, dict[str, list[float]]]]:
    """What was found with all threads, and with one."""
    rng = np.random.default_rng(0)
    data = {
        "source": rng.random((800, FEATURES), np.float32),
        "labels": rng.integers(0, CLASSES, 800),
        "target": rng.random((500, FEATURES), np.float32),
    }
    found = {}
    for threads in sorted({torch.get_num_threads(), 1}, reverse=True):
        torch.set_num_threads(threads)
        found[threads] = compared(data)
    return found


def page(found: dict) -> str:
    lines = [
        "# What the trainers cost\n",
        "Heads on frozen features, 1,000 steps of 32 + 32 rows. The plain loop is the source alone "
        "as a tutorial has it, 32 rows a step, run along with each training, in slices of 20 "
        "steps; in brackets the least and the largest of the rounds. The source alone in our loop "
        "has 32 rows, or 64, which are as many as the trainers see.",
    ]
    for threads, each in found["threads"].items():
        lines += [f"\n## Threads: {threads}\n", *table(each)]
    return "\n".join(lines)


if __name__ == "__main__":
    run("adaptation", {"threads": rounds}, page)
