"""Small trainings, also as a process: ``python training_process.py FOLDER OPTIONS``.

Options, as JSON: those of :func:`training`, and ``log``, a file that gets a line for every batch;
``sleep``, seconds a batch takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch
from torch import nn

from shiftcal.adaptation.feeds import ArrayFeed, Feed
from shiftcal.adaptation.loop import Course, seeded, train
from shiftcal.adaptation.network import linear_bottleneck, make_objective
from shiftcal.adaptation.trainer import Settings, Trainer
from shiftcal.models.pytorch import torch_threads as cpu_threads

CLASSES, WIDTH = 3, 5
IDENTITY = {"data": "drawn", "trainer": {"name": "moments"}}


@final
@dataclass(frozen=True, kw_only=True)
class Moments(Trainer):
    """Means of the features brought together, seen by a layer that is trained along."""

    label = "Moments"
    dropout: float = 0.5
    norm: bool = True

    def bottleneck(self, n_in, width):
        return linear_bottleneck(n_in, width, norm=self.norm, dropout=self.dropout)

    def extra(self, width, n_classes):
        return nn.Linear(width, 2)

    def transfer(self, source, target, extra, step):
        return (extra(source.features).mean(0) - extra(target.features).mean(0)).square().sum()


class Watched(Feed):
    """Does something before each batch, which it is told the number of."""

    def __init__(self, feed, before):
        self._feed, self._before = feed, before

    def batches(self, first, last):
        for step, batch in enumerate(self._feed.batches(first, last), first):
            self._before(step)
            yield batch


def data(kind, n=40, m=30, seed=5):
    """Source, labels and target: features, or small images."""
    rng = np.random.default_rng(seed)
    shape = (7,) if kind == "features" else (3, 8, 6)
    labels = rng.integers(0, CLASSES, n)
    source = rng.standard_normal((n, *shape), np.float32)
    source.reshape(n, -1)[np.arange(n), labels] += 2
    return source, labels, rng.standard_normal((m, *shape), np.float32) + 0.5


def network(kind, trainer, seed=3):
    """The network that is trained."""
    with seeded(seed):
        if kind == "features":
            return make_objective(trainer, None, 7, CLASSES, width=WIDTH)
        backbone = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        return make_objective(trainer, backbone, 4, CLASSES, width=WIDTH)


def settings(**changes):
    """Of all these trainings."""
    return Settings(**{"iterations": 60, "batch_size": 8, "lr": 0.05, **changes})


def training(
    folder,
    *,
    kind="features",
    trainer=None,
    before=None,
    validate=None,
    changes=None,
    identity=IDENTITY,
    threads=1,
    **course,
):
    """Train; the objective and what is told about it."""
    given = settings(**(changes or {}))
    objective = network(kind, trainer or Moments())
    feed = ArrayFeed(*data(kind), batch_size=given.batch_size, seed=3)
    told = Course(**{"seed": 3, "device": "cpu", "checkpoint_every": 8, **course})
    watched = feed if before is None else Watched(feed, before)
    with cpu_threads(threads):
        done = train(
            objective, watched, given, Path(folder), told, identity=identity, validate=validate
        )
    return objective, done


def weights(objective):
    """Every number of a network, by name."""
    return {name: one.detach().clone() for name, one in objective.state_dict().items()}


def same(one, two):
    """Whether two networks are equal to the last bit."""
    one, two = weights(one), weights(two)
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def begin(folder, **options):
    """Such a process."""
    return subprocess.Popen(
        [sys.executable, __file__, str(folder), json.dumps(options, default=str)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _main(folder, options):
    told = json.loads(options)
    log, sleep = told.pop("log", None), told.pop("sleep", 0)

    def before(step):
        if log is not None:
            with Path(log).open("a") as file:
                file.write(f"{step}\n")
        time.sleep(sleep)

    objective, done = training(folder, before=before, **told)
    torch.save(weights(objective), f"{folder}.weights")
    told = [done.resumed_at, done.selected_step]
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    _main(*sys.argv[1:])
