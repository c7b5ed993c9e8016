"""One task from images to what calibration needs: features, training, outputs; each goes on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from shiftcal._checks import check_count
from shiftcal._files import make_folder
from shiftcal.adaptation._about import check_free
from shiftcal.adaptation.adapted import Adapted
from shiftcal.adaptation.choice import choose
from shiftcal.adaptation.devices import distributed, resolve_device
from shiftcal.adaptation.frozen import Frozen
from shiftcal.adaptation.inputs import Wanted
from shiftcal.adaptation.modes import check_features, frozen_inputs, network_inputs
from shiftcal.adaptation.one_run import OneRun
from shiftcal.adaptation.surrogate_choice import SurrogateChoice
from shiftcal.adaptation.task import Task
from shiftcal.adaptation.training.loop import Course
from shiftcal.adaptation.training.randomness import seeded
from shiftcal.datasets import as_image_set
from shiftcal.scoring.run import Reporting
from shiftcal.scoring.sharing import alone_in


def adapt(  # noqa: PLR0913 (all but the first three are options)
    source: object,
    target: object,
    folder: str | os.PathLike[str],
    *,
    trainer: str = "cdan",
    backbone: object = None,
    frozen: bool = False,
    recipe: str | None = None,
    changes: Mapping[str, Any] | None = None,
    transform: str | None = None,
    seed: int = 0,
    corruption: object = "pixelate",
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    select: Literal["last", "source-validation"] = "last",
    device: str = "auto",
    precision: str | None = None,
    checkpoint_every: int = 500,
    workers: int = 0,
    features: str | os.PathLike[str] | tuple[Frozen, Frozen] | None = None,
    reporting: Reporting | None = None,
) -> Adapted:
    """Train a network on labelled source and unlabelled target images, and store what it gives.

    Four fifths of the source are trained on and the rest is for calibration; one half of the target
    is trained on without labels, and the other is held out. Stored are a surrogate bank of the
    calibration images, scores of the source images that were trained on and of the held-out target,
    all with bottleneck features. No label of the target has a part in anything but the accuracy
    that is told at the end. The same call goes on where it was broken off, to the same result.

    Args:
        source: Images with labels: a set, or what :func:`shiftcal.datasets.as_image_set` makes one
            of.
        target: Images of the same classes; labels, if there are any, judge the result.
        folder: Folder of the run; made if it is not there.
        trainer: One of :func:`shiftcal.adaptation.names`.
        backbone: What :func:`make_backbone` takes: ``"resnet50"``, the text of a model, a torch
            module. A frozen one may be any model that gives features.
        frozen: Whether the backbone stays as it is: features are computed once, and heads trained
            on them.
        recipe: One of the trainer's, such as ``"office-home"``; ``"default"`` is the reference
            library's defaults, which are taken too if nothing is said, but for ``"digits-cnn"``,
            which has the recipe ``"digits"``, and a frozen backbone, which has ``"frozen"``.
        changes: Options of the trainer and settings of the training that shall be otherwise.
        transform: What is done to training images, as for :func:`training_transform`; by default
            as the recipe's data set has it in the reference library. Not for a frozen backbone.
        seed: Decides splits, initial weights, the order of images and whatever else is random.
        corruption: What makes the surrogate sets, after images are resized and cropped.
        severities: How much of it.
        select: Which weights are kept: the last, or those with the best accuracy on the calibration
            images, which is measured some twenty times.
        device: As torch names it; ``"auto"`` is the GPU if there is one.
        precision: ``"bfloat16"`` or ``"float16"`` trains in mixed precision, on a GPU.
        checkpoint_every: Iterations between two checkpoints, from which a training that was stopped
            goes on; there is one every five minutes too.
        workers: Processes that read training images, or that compute frozen features; 0 is none
            but this one.
        features: Folder for frozen features, to be shared between runs; by default in that of the
            run, where only calibration images are corrupted. Or the features themselves, of source
            and target, which saves making the backbone; images are looked at, once a set, to see
            that they are those of the features.
        reporting: How progress is told.

    Raises:
        InputError: If something given cannot be used.
        FileError: If the folder holds something else, or another run.
        FitError: If the training diverges; what is to be done is said.
    """
    where = Path(folder)
    check_free(where)
    frozen = frozen or isinstance(features, tuple)
    check_features(features, where, frozen=frozen)
    chosen = choose(
        trainer,
        recipe=recipe,
        changes=changes,
        transform=transform,
        frozen=frozen,
        backbone=backbone,
    )
    surrogates = SurrogateChoice.of(corruption, severities)
    check_count(workers, name="workers", least=0)
    told = reporting or Reporting()
    course = Course(
        seed=check_count(seed, name="seed", least=0, most=2**64 - 1),
        device=device,
        precision=precision,
        checkpoint_every=checkpoint_every,
        select=select,
        reporting=told,
    )
    resolve_device(device)
    task = Task(as_image_set(source), as_image_set(target))
    split = task.split(seed)
    # Whatever is drawn, torch's generator is as it was afterwards.
    with distributed(device) as group, seeded(_stream_of_backbone(seed)):
        wanted = Wanted(task, split, surrogates, group, workers, told)
        inputs = (
            frozen_inputs(wanted, backbone, features, where)
            if frozen
            else network_inputs(wanted, backbone, chosen.transform)
        )
        run = OneRun(where, chosen, task, split, inputs, surrogates, course, frozen)
        make_folder(where)
        with alone_in(where) if group.main else nullcontext():
            before = run.finish(group)
    return replace(Adapted.open(where), finished_before=before)


def _stream_of_backbone(seed: int) -> int:
    """The seed of what a backbone draws: numbers that the heads have not."""
    digest = hashlib.blake2b(f"backbone {seed}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
