"""What a trainer's loss is worth: the same training without it, on PACS.

A trainer differs from ``source-only`` in more than its loss: learning rate, weight decay, heads,
and that target rows go through the network, where batch normalisation takes statistics of them. The
control is the trainer with ``trade_off = 0``: all of that, and no gradient of its loss. Features,
splits, batches and first weights are those of the study ``pacs`` with the same seed, whose full
trainings are read from ``results/studies/pacs``.

``python benchmarks/accuracy/controls.py [SEED ...]`` (0 if left out) needs some minutes on one core
and writes ``results/controls.json`` after every four tasks. ``source-only`` is trained again and
must come to the study's accuracies, within an image or two: other threads round features otherwise.
Reads images from $SHIFTCAL_DATA or ../shared/data.
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from shiftcal import adaptation
from shiftcal.adaptation.loop import ArrayFeed, seeded, train
from shiftcal.adaptation.network import Objective
from shiftcal.adaptation.run import Frozen, Task, frozen_features, run_heads
from shiftcal.adaptation.trainers import choose
from shiftcal.datasets import as_image_set
from shiftcal.models.pytorch import torch_threads as cpu_threads
from shiftcal.progress import Reporting

sys.path.insert(0, str(Path(__file__).parent))
from domains import RUNS, frozen_lite0, plan_of

from studies import RESULTS, ROOT, commit_of, data_folder

PLACE = Path(__file__).parent / "results" / "controls.json"
ALONE = "source-only"
# Images that source-only may differ by, of the 350 that are held out.
WITHIN = 2.5 / 350


def accuracy(task: Task, source: Frozen, target: Frozen, trainer: str, seed: int) -> float:
    """On the held-out target, of a training as the study does it, but with ``trade_off = 0``."""
    chosen = choose(trainer, changes={"trade_off": 0.0}, frozen=True)
    split, settings = task.split(seed), chosen.settings
    with seeded(seed):
        objective = Objective(
            chosen.trainer,
            None,
            source.features().shape[1],
            task.n_classes,
            width=settings.bottleneck,
        )
    feed = ArrayFeed(
        source.features()[split.train],
        task.source.labels[split.train],
        target.features()[split.seen] if chosen.trainer.adapts else None,
        batch_size=settings.batch_size,
        seed=seed,
    )
    quietly = {"device": "cpu", "reporting": Reporting(shown=False)}
    with tempfile.TemporaryDirectory() as folder:
        train(objective, feed, settings, Path(folder), identity={}, seed=seed, **quietly)
    rows = split.held_out
    logits = run_heads(objective.classifier, target.features()[rows]).logits
    return float((logits.argmax(axis=1) == task.target.labels[rows]).mean())


def studied() -> dict[tuple[str, str, int], float]:
    """Accuracies of the study by task, trainer and seed."""
    with (RESULTS / "pacs" / "data" / "trainings.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["task"], row["trainer"], int(row["seed"])): float(row["target_accuracy"])
            for row in csv.DictReader(file)
        }


def domains_of_pacs(network) -> dict:
    """Images and features of every domain by name."""
    found = {}
    for domain in plan_of("pacs", data_folder(), network).domains:
        images = next(as_image_set(one) for (one,) in domain.images if Path(path_in(one)).is_dir())
        folder = RUNS / "controls" / domain.name
        found[domain.name] = images, frozen_features(network.spec, images, folder, severities=())
    return found


def path_in(text: str) -> str:
    return text.partition(":")[2].partition("?")[0]


def in_rounds(names: list[str]) -> list[list[tuple[str, str]]]:
    """All tasks, in rounds in which every domain is a source once and a target once."""
    n = len(names)
    return [[(names[i], names[(i + by) % n]) for i in range(n)] for by in range(1, n)]


def of_round(pairs: list[tuple[str, str]], found: dict, seed: int, full: dict) -> list[dict]:
    rows = []
    for source, target in pairs:
        (images, features), (others, theirs) = found[source], found[target]
        task = Task(images, others)
        name = f"{source}_to_{target}"
        for trainer in adaptation.names():
            begun = time.process_time()
            made = accuracy(task, features, theirs, trainer, seed)
            seconds = time.process_time() - begun
            before = full[name, trainer, seed]
            if trainer == ALONE and abs(made - before) > WITHIN:
                raise SystemExit(f"{name}, seed {seed}: {ALONE} has {made}, the study {before}")
            rows.append(
                {"task": name, "trainer": trainer, "seed": seed, "full": before, "control": made}
            )
            print(f"{name} {trainer} {seed}: {before:.4f} {made:.4f}, {seconds:.1f} s", flush=True)
    return rows


def summary(rows: list[dict]) -> dict[str, dict[str, float]]:
    """Mean accuracies over tasks and seeds, what the loss adds, and how often it adds anything."""

    def mean(trainer: str, key: str) -> float:
        return statistics.fmean(row[key] for row in rows if row["trainer"] == trainer)

    alone = mean(ALONE, "full")
    return {
        trainer: {
            "full": mean(trainer, "full"),
            "control": mean(trainer, "control"),
            "control_over_source_only": mean(trainer, "control") - alone,
            "loss_adds": mean(trainer, "full") - mean(trainer, "control"),
            "tasks_better": sum(
                row["full"] > row["control"] for row in rows if row["trainer"] == trainer
            ),
            "trainings": sum(row["trainer"] == trainer for row in rows),
        }
        for trainer in adaptation.names()
    }


def main(seeds: list[int]) -> None:
    RUNS.mkdir(exist_ok=True)
    network = frozen_lite0(RUNS)
    origin = {**commit_of(ROOT), **network.origin()}
    full, rows = studied(), []
    with cpu_threads(1):
        found = domains_of_pacs(network)
        for seed, pairs in product(seeds, in_rounds(list(found))):
            rows += of_round(pairs, found, seed, full)
            told = {"study": "pacs", "seeds": sorted({row["seed"] for row in rows})}
            told |= {"origin": origin, "summary": summary(rows), "rows": rows}
            PLACE.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    print(json.dumps(summary(rows), indent=1))


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [0])
