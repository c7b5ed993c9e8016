"""From what a caller gives to inputs that can be trained on."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np

from shiftcal.adaptation.backbones.make import make_backbone
from shiftcal.adaptation.feature_model import FeatureModel, as_feature_model
from shiftcal.adaptation.frozen import Frozen, frozen_features
from shiftcal.adaptation.frozen_mode import FrozenMode
from shiftcal.adaptation.network_mode import NetworkMode
from shiftcal.adaptation.surrogate_choice import SurrogateChoice
from shiftcal.adaptation.task import Task, TaskSplit
from shiftcal.datasets import ImageSet
from shiftcal.errors import InputError
from shiftcal.numerics._threads import thread_count
from shiftcal.scoring.run import Reporting

_NEEDED = (
    "backbone must say what gives the features: a name such as 'resnet50', the text of a model or "
    "a torch module; got nothing."
)


def network_mode(
    task: Task,
    split: TaskSplit,
    backbone: object,
    *,
    transform: str,
    surrogates: SurrogateChoice,
    workers: int,
    reporting: Reporting,
) -> NetworkMode:
    """A whole network; what its weights begin with may be drawn from torch's generator."""
    if backbone is None:
        raise InputError(_NEEDED)
    made = make_backbone(backbone)
    wanted = surrogates.corruption, surrogates.severities
    return NetworkMode(task, split, made, transform, *wanted, workers, reporting)


def frozen_mode(
    task: Task,
    split: TaskSplit,
    backbone: object,
    *,
    features: str | os.PathLike[str] | tuple[Frozen, Frozen],
    surrogates: SurrogateChoice,
    reporting: Reporting,
) -> FrozenMode:
    """Heads on features, which are made if they are not there.

    Args:
        task: The images.
        split: Which of them are used for what.
        backbone: What gives the features; not looked at if there are features.
        features: Those of source and target; or a folder for them, below which each set of images
            has one of its own, shared by all runs that need it.
        surrogates: Which sets the source needs beside the clean one.
        reporting: How progress is told.
    """
    if isinstance(features, tuple):
        source, target = features
        if source.corruption != surrogates.corruption.name:
            raise InputError(
                f"the source's features must be of the corruption {surrogates.corruption.name}; "
                f"they are of {source.corruption}. Name the same."
            )
        return FrozenMode(task, split, source, target, surrogates.severities)
    if backbone is None:
        raise InputError(_NEEDED)
    model = as_feature_model(backbone)
    source, target = (
        frozen_features(
            model,
            images,
            Path(features) / _folder_name(model, images),
            corruption=surrogates.corruption,
            severities=severities,
            reporting=reporting,
        )
        for images, severities in ((task.source, surrogates.severities), (task.target, ()))
    )
    return FrozenMode(task, split, source, target, surrogates.severities)


def _folder_name(model: FeatureModel, images: ImageSet) -> str:
    """The name of the images, as far as a folder can have it, and what decides the features."""
    content = images.digest(np.arange(len(images)), threads=thread_count())
    told = json.dumps([model.fingerprint, model.preprocessing.to_dict(), content])
    digest = hashlib.blake2b(told.encode(), digest_size=6).hexdigest()
    plain = re.sub(r"[^a-z0-9]+", "-", images.name.lower())[-40:].strip("-")
    return f"{plain}-{digest}" if plain else digest
