"""What each trainer costs on frozen features, beside training on the source alone.

Heads on 1,280 features of 800 source and 500 target images of ten classes, made up: time does not
depend on them. The recipe ``frozen``, one thread, the loop that ``shiftcal adapt`` runs with its
checkpoints, nothing else. All trainers in turn, several rounds, the median of each. There are two
loops to compare with: the source alone with the same batch, which sees half the rows in a step,
and the source alone with twice the batch, which sees as many as the others do.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from timing import circumstances, listed, write

from shiftcal import adaptation
from shiftcal.adaptation.feeds.arrays import ArrayFeed
from shiftcal.adaptation.network import make_objective
from shiftcal.adaptation.training.loop import Course, train
from shiftcal.adaptation.training.randomness import seeded
from shiftcal.scoring.run import Reporting

ROUNDS = 5
FEATURES, CLASSES = 1280, 10
ALONE, AS_MANY = "source-only", "source-only, twice the batch"
LIMITS = {"dan": 1.3, "jan": 1.3, "mcc": 1.3, "safn": 1.3, "cdan": 2.0, "mdd": 2.0}


def once(name: str, data: dict[str, np.ndarray], folder: Path) -> float:
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
    names = [ALONE, AS_MANY, *(n for n in adaptation.names() if n != ALONE)]
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
        "Heads on frozen features, 1,000 steps of 32 + 32 rows, one thread; the source alone with "
        "32 rows a step, and with 64, which are as many as the others see.\n",
        "| trainer | seconds | x source alone, 32 rows | x source alone, 64 rows | goal |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, seconds in median.items():
        limit = f"{LIMITS[name]}" if name in LIMITS else ""
        lines.append(
            f"| {name} | {seconds:.2f} | {seconds / median[ALONE]:.2f} | "
            f"{seconds / median[AS_MANY]:.2f} | {limit} |"
        )
    told = {k: v for k, v in facts.items() if k not in ("seconds", "median_seconds")}
    write("adaptation", facts, [], "\n".join([*lines, "", listed(told)]) + "\n")


if __name__ == "__main__":
    main()
