"""How long trainings take, from some steps on made-up inputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation.choice import Choice
from shiftcal.adaptation.devices import cpu_threads
from shiftcal.adaptation.feeds.arrays import ArrayFeed
from shiftcal.adaptation.network import make_objective
from shiftcal.adaptation.training.course import Course
from shiftcal.adaptation.training.loop import train
from shiftcal.adaptation.training.randomness import seeded
from shiftcal.scoring.run import Reporting
from shiftcal.studies.adapting.choosing import chosen_by
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
    plan: AdaptationPlan,
    trainers: Sequence[TrainerPlan],
    inputs: Inputs,
    *,
    scored: int,
    threads: int | None,
) -> dict[str, float]:
    """What one training takes with its outputs, by key of the trainer.

    Heads are timed trainer by trainer. In a whole network the backbone takes most of the time: one
    trainer is timed, and the others take as long for each image.

    Args:
        plan: The plan.
        trainers: At least one.
        inputs: What the network is given.
        scored: Images that a whole network scores when it is trained.
        threads: Of torch; ``None`` is as it is.
    """
    chosen = {trainer.key: chosen_by(plan, trainer) for trainer in trainers}
    device = plan.training.device
    with cpu_threads(threads):
        if inputs.module is None:
            return {
                key: _images(each) * _timed(each, inputs, device)[0] + _BESIDE
                for key, each in chosen.items()
            }
        last = list(chosen.values())[-1]  # that one looks at the target, if any does
        image, forward = _timed(last, inputs, device)
    return {key: _images(each) * image + scored * forward for key, each in chosen.items()}


def _images(chosen: Choice) -> int:
    """Images of both domains over all steps."""
    domains = 2 if chosen.trainer.adapts else 1
    return domains * chosen.settings.batch_size * chosen.settings.iterations


def _timed(chosen: Choice, inputs: Inputs, device: str) -> tuple[float, float]:
    """Seconds that an image takes in training, and in evaluation."""
    settings = chosen.settings
    few = _HEADS if inputs.module is None else _NETWORK
    with TemporaryDirectory() as folder, seeded(0):
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
        course = Course(device=device, reporting=Reporting(shown=False))
        # The first step makes what later ones find ready, and takes several times as long.
        for steps in (1, few):
            some_steps = settings.changed({"iterations": steps})
            place = Path(folder) / f"{steps}-steps"
            trained = train(objective, feed, some_steps, place, course, identity={})
        return 1 / trained.images_per_second, _forward(objective.classifier, some)


def _made_up(inputs: Inputs, batch_size: int) -> NDArray[np.float32]:
    """As many as two batches have."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((2 * batch_size, *inputs.shape), np.float32)


def _forward(classifier: Any, images: NDArray[np.float32]) -> float:
    """Seconds that an image takes through a network in evaluation mode."""
    from shiftcal.adaptation._torch import torch

    where = next(classifier.parameters()).device
    began = time.perf_counter()
    with torch.inference_mode():
        classifier(torch.from_numpy(images).to(where)).sum().item()
    return (time.perf_counter() - began) / len(images)
