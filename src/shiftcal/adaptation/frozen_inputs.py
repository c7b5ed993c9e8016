"""Frozen features for a run: those that are given, or those of a folder, made if need be."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.adaptation.feature_model import FeatureModel
from shiftcal.adaptation.frozen import Frozen, frozen_features
from shiftcal.adaptation.frozen_mode import FrozenMode
from shiftcal.adaptation.image_content import digest_in_shards
from shiftcal.adaptation.inputs import Inputs, Wanted
from shiftcal.datasets import ImageSet
from shiftcal.errors import InputError
from shiftcal.numerics._threads import thread_count
from shiftcal.scoring.engines.local import LocalEngine
from shiftcal.scoring.job import SHARD_SIZE


def given_features(wanted: Wanted, source: Frozen, target: Frozen) -> Inputs:
    """Features that the caller has.

    Raises:
        InputError: If they are of another corruption, of other images or of two backbones.
    """
    task, surrogates = wanted.task, wanted.surrogates
    if source.corruption != surrogates.corruption.name:
        raise InputError(
            f"the source's features must be of the corruption {surrogates.corruption.name}; "
            f"they are of {source.corruption}. Name the same."
        )
    mode = FrozenMode(task, wanted.split, source, target, surrogates.severities)
    for images, frozen in ((task.source, source), (task.target, target)):
        size = int(frozen.document["origin"]["shard_size"])
        if _digest(images, size, wanted) != frozen.identity["images"]:
            raise InputError(
                f"{frozen.folder} must hold features of the images of {images.name}; it holds "
                "those of other images, or in another order. Make the features of these images."
            )
    return Inputs.made(mode)


@dataclass(frozen=True, eq=False)
class FeaturesFolder:
    """Features in a folder, below which each set of images has one of its own.

    Attributes:
        wanted: What they are for.
        model: What gives the features.
        folder: Where they are.
        shared: Whether other runs, of other splits, shall find them there. Else only calibration
            images are corrupted.
    """

    wanted: Wanted
    model: FeatureModel
    folder: Path
    shared: bool

    def identity(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """The same as that of the features, without making them."""
        task = self.wanted.task
        return {
            name: self._identity_of(images, before.get(name, {}))
            for name, images in (("source", task.source), ("target", task.target))
        }

    def _identity_of(self, images: ImageSet, before: Mapping[str, Any]) -> dict[str, Any]:
        model = self.model
        return {
            "fingerprint": model.fingerprint,
            "engine": model.engine,
            "preprocessing": model.preprocessing.to_dict(),
            "batch_size": model.batch_size or before.get("batch_size"),
            "images": _digest(images, SHARD_SIZE, self.wanted),
        }

    def mode(self) -> FrozenMode:
        """Heads on them; whatever is missing is computed."""
        task, split = self.wanted.task, self.wanted.split
        severities = self.wanted.surrogates.severities
        source = self._features(task.source, severities if self.shared else ())
        target = self._features(task.target, ())
        harder = None
        if not self.shared:
            harder = self._features(task.source.subset(split.calibration), severities)
        return FrozenMode(task, split, source, target, severities, harder)

    def _features(self, images: ImageSet, severities: Sequence[int]) -> Frozen:
        wanted = self.wanted
        return frozen_features(
            self.model,
            images,
            self.folder / _folder_name(self.model, images),
            corruption=wanted.surrogates.corruption,
            severities=severities,
            engine=LocalEngine(workers=wanted.workers) if wanted.workers else None,
            reporting=wanted.reporting,
        )


def _digest(images: ImageSet, size: int, wanted: Wanted) -> str:
    """Every image is read, which is enough if one process does it."""
    main = wanted.group.main
    told: str = wanted.group.told(
        digest_in_shards(images, size, wanted.reporting) if main else None
    )
    return told


def _folder_name(model: FeatureModel, images: ImageSet) -> str:
    """The name of the images, as far as a folder can have it, and what decides the features."""
    content = images.digest(np.arange(len(images)), threads=thread_count())
    told = json.dumps([model.fingerprint, model.preprocessing.to_dict(), content])
    digest = hashlib.blake2b(told.encode(), digest_size=6).hexdigest()
    plain = re.sub(r"[^a-z0-9]+", "-", images.name.lower())[-40:].strip("-")
    return f"{plain}-{digest}" if plain else digest
