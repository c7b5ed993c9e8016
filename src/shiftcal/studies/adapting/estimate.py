"""How long a study of domain adaptation will take, said before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from shiftcal.adaptation.task import Task
from shiftcal.scoring.pending import measured_rate
from shiftcal.studies.adapting.cells import variants_of
from shiftcal.studies.adapting.choosing import chosen_by
from shiftcal.studies.adapting.evaluation import works_left
from shiftcal.studies.adapting.features import count_left
from shiftcal.studies.adapting.pace import Inputs, training_seconds
from shiftcal.studies.adapting.plan import AdaptationPlan, Pair
from shiftcal.studies.adapting.sources import Domains
from shiftcal.studies.adapting.training import is_left, threads_of
from shiftcal.studies.adapting.trainings import Training, trainings_of
from shiftcal.studies.stages.costs import crowding
from shiftcal.studies.stages.enough import one_output
from shiftcal.studies.stages.estimate import Estimate, report_seconds
from shiftcal.studies.stages.rehearsal import Shape, costs_of
from shiftcal.studies.stages.scoring import Means


def estimate(domains: Domains, run: Path, means: Means, *, workers: int) -> Estimate:
    """Count what is left to be done; measure backbone and trainers for some seconds, if anything.

    Args:
        domains: The images and the backbone.
        run: Folder of the run, which stays as it is.
        means: How it will be done.
        workers: Processes.
    """
    plan = domains.plan
    all_of_them = trainings_of(plan)
    left = [training for training in all_of_them if is_left(training, run)]
    finished = [training for training in all_of_them if training.finished(run)]
    images, job = count_left(domains, run, means) if plan.network.frozen else (0, None)
    evaluations = len(left) * len(plan.methods)
    evaluations += sum(len(work.cells) for work in works_left(plan, finished, run))
    if not images and not evaluations:
        return Estimate(0, 0.0, 0, 0.0, 0, report_seconds(run), trainings=0)
    inputs = _inputs(domains)
    return Estimate(
        images=images,
        rate=measured_rate(job) if job is not None and images else 0.0,
        evaluations=evaluations,
        evaluation_seconds=_evaluating(domains, evaluations, inputs, workers),
        bytes=4 * images * (inputs.n_features + 2),
        report_seconds=report_seconds(run),
        trainings=len(left),
        training_seconds=_training(domains, left, inputs, workers),
    )


def _inputs(domains: Domains) -> Inputs:
    pair = domains.plan.pairs[0]
    images = domains.images[pair.source.name]
    k = Task(images, domains.images[pair.target.name]).n_classes
    made = domains.backbone
    if domains.plan.network.frozen:
        features = one_output(made, images).features
        assert features is not None
        return Inputs((features.shape[1],), None, features.shape[1], k)
    some = images.read(np.arange(1), framing=made.preprocessing.framing).images
    return Inputs(made.preprocessing.numbers(some).shape[1:], made.module, made.n_features, k)


def _training(domains: Domains, left: Sequence[Training], inputs: Inputs, workers: int) -> float:
    """What trainings take, one after the other or several at once."""
    plan, threads = domains.plan, threads_of(domains.plan)
    if not left:
        return 0.0
    trainers = {training.trainer.key: training.trainer for training in left}
    scored = round(float(np.mean([_scored(domains, training.pair) for training in left])))
    each = training_seconds(plan, list(trainers.values()), inputs, scored=scored, threads=threads)
    total = sum(each[training.trainer.key] for training in left)
    at_once = 1 if threads is None else min(max(1, workers // threads), max(1, len(left)))
    return total if at_once == 1 else crowding(at_once) * total / at_once


def _scored(domains: Domains, pair: Pair) -> int:
    """Images that a network scores when it is trained: all sets of the bank, source and target."""
    split = Task(domains.images[pair.source.name], domains.images[pair.target.name]).split(0)
    sets = 1 + len(domains.plan.calibration.severities)
    return sets * len(split.calibration) + len(split.train) + len(split.held_out)


def _evaluating(domains: Domains, evaluations: int, inputs: Inputs, workers: int) -> float:
    """What evaluations take, each method timed once on made-up scores of the tasks' mean size."""
    plan = domains.plan
    splits = [
        Task(domains.images[pair.source.name], domains.images[pair.target.name]).split(0)
        for pair in plan.pairs
    ]
    shape = Shape(
        calibration=round(float(np.mean([len(split.calibration) for split in splits]))),
        test=round(float(np.mean([len(split.held_out) for split in splits]))),
        train=round(float(np.mean([len(split.train) for split in splits]))),
        classes=inputs.n_classes,
        features=_width(plan, inputs),
    )
    costs = costs_of(variants_of(plan), shape, bins=plan.bins)
    network = sum(cost.fit + cost.fixed + cost.row * shape.test for cost in costs)
    total = network * evaluations / len(plan.methods)
    return total if workers == 1 else crowding(workers) * total / workers


def _width(plan: AdaptationPlan, inputs: Inputs) -> int:
    """Features after the bottleneck, of the trainer that has most."""
    widths = [chosen_by(plan, trainer).settings.bottleneck for trainer in plan.trainers]
    return max(widths) or inputs.n_features
