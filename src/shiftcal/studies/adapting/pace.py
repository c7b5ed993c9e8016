"""How long trainings take, from some steps of each trainer on made-up inputs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation.choice import choose
from shiftcal.adaptation.devices import cpu_threads
from shiftcal.adaptation.feeds.arrays import ArrayFeed
from shiftcal.adaptation.network import make_objective
from shiftcal.adaptation.training.course import Course
from shiftcal.adaptation.training.loop import train
from shiftcal.adaptation.training.randomness import seeded
from shiftcal.scoring.run import Reporting
from shiftcal.studies.adapting.checking import changes_of
from shiftcal.studies.adapting.plan import AdaptationPlan, TrainerPlan

# Steps that are timed, of heads and of a whole network.
_HEADS, _NETWORK = 60, 3
# What a training of heads takes beside its steps: to begin, and to store what comes of it.
_BESIDE = 0.5


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a network is given.

    Attributes:
        shape: Of one input: of a row of features, or of an image.
        module: What makes features of it; ``None`` if it is features.
        n_features: How many.
        n_classes: Of the task.
    """

    shape: tuple[int, ...]
    module: Any
    n_features: int
    n_classes: int


def training_seconds(
    plan: AdaptationPlan, trainer: TrainerPlan, inputs: Inputs, *, scored: int, threads: int | None
) -> float:
    """What one training takes, with its outputs.

    Args:
        plan: The plan.
        trainer: The trainer.
        inputs: What the network is given.
        scored: Images that a whole network scores when it is trained.
        threads: Of torch; ``None`` is as it is.
    """
    chosen = choose(
        trainer.name,
        recipe=plan.training.recipe,
        changes=changes_of(plan.training, trainer),
        frozen=plan.network.frozen,
    )
    settings = chosen.settings
    few = settings.changed({"iterations": _HEADS if inputs.module is None else _NETWORK})
    with TemporaryDirectory() as folder, cpu_threads(threads), seeded(0):
        objective = make_objective(
            chosen.trainer,
            inputs.module,
            inputs.n_features,
            inputs.n_classes,
            width=settings.bottleneck,
        )
        some = _made_up(inputs, settings.batch_size)
        labels = np.arange(len(some)) % inputs.n_classes
        target = some[::-1].copy() if chosen.trainer.adapts else None
        feed = ArrayFeed(some, labels, target, batch_size=settings.batch_size, seed=0)
        course = Course(device=plan.training.device, reporting=Reporting(shown=False))
        trained = train(objective, feed, few, Path(folder) / "t", course, identity={})
        images = settings.batch_size * (1 if target is None else 2)
        steps = settings.iterations * images / trained.images_per_second
        if inputs.module is None:
            return steps + _BESIDE
        return steps + scored * _forward(objective.classifier, some)


def _made_up(inputs: Inputs, batch_size: int) -> NDArray[np.float32]:
    """As many as two batches have."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((2 * batch_size, *inputs.shape), np.float32)


def _forward(classifier: Any, images: NDArray[np.float32]) -> float:
    """Seconds that an image takes through a network in evaluation mode."""
    from shiftcal.adaptation._torch import torch

    classifier.eval()
    where = next(classifier.parameters()).device
    began = time.perf_counter()
    with torch.inference_mode():
        classifier(torch.from_numpy(images).to(where)).sum().item()
    return (time.perf_counter() - began) / len(images)
