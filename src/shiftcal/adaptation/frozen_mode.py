"""Training and outputs on frozen features: no image is read."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation._npz_arrays import write_arrays
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.feeds.arrays import ArrayFeed
from shiftcal.adaptation.feeds.base import Feed
from shiftcal.adaptation.frozen import Frozen
from shiftcal.adaptation.headed_model import HeadedModel, headed_fingerprint, run_heads
from shiftcal.adaptation.mode import BANK, SOURCE_TRAIN, TARGET, Mode
from shiftcal.adaptation.network import Classifier, Objective, make_objective
from shiftcal.adaptation.settings import Settings
from shiftcal.adaptation.task import Task, TaskSplit
from shiftcal.datasets import ImageSet
from shiftcal.errors import InputError
from shiftcal.scoring.names import names_of
from shiftcal.scoring.scores_npz import text_of
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.surrogates.bank import set_name
from shiftcal.surrogates.folder import save_bank


@dataclass(frozen=True, eq=False)
class FrozenMode(Mode):
    """Heads on features that are on disk.

    Attributes:
        task: The images, of which labels and names are used.
        split: Which of them are used for what.
        source: Features of all source images, clean and at the severities.
        target: Features of all target images.
        severities: Those of the bank, in rising order.
        harder: Features of the calibration images at the severities, if those of the source have
            none.

    Raises:
        InputError: If there are not as many rows of features as images, or the two sets of features
            are not of one backbone.
    """

    task: Task
    split: TaskSplit
    source: Frozen
    target: Frozen
    severities: Sequence[int]
    harder: Frozen | None = None

    def __post_init__(self) -> None:
        for images, features in ((self.task.source, self.source), (self.task.target, self.target)):
            if len(images) != len(features):
                raise InputError(
                    f"{features.folder} must hold a row for each of the {len(images):,} images of "
                    f"{images.name}; it has {len(features):,}. Make the features of these images."
                )
        ours, theirs = (frozen.identity for frozen in (self.source, self.target))
        if ours["fingerprint"] != theirs["fingerprint"]:
            raise InputError(
                f"{self.source.folder} and {self.target.folder} must hold features of one "
                "backbone; they are of two. Make both with the same."
            )

    @property
    def identity(self) -> dict[str, Any]:
        """The features of both domains."""
        return {"source": self.source.identity, "target": self.target.identity}

    @property
    def backbone(self) -> dict[str, Any]:
        """That of the features, and where they are."""
        model = self.source.document["origin"]["model"]
        return {
            "spec": model["spec"],
            "fingerprint": model["fingerprint"],
            "n_features": self.source.n_features,
            "preprocessing": model["preprocessing"],
            "features": [str(frozen.folder.absolute()) for frozen in (self.source, self.target)],
        }

    def network(self, trainer: Trainer, settings: Settings) -> Objective:
        """Heads alone."""
        n_features, width = self.source.n_features, settings.bottleneck
        return make_objective(trainer, None, n_features, self.task.n_classes, width=width)

    def feed(
        self, trainer: Trainer, settings: Settings, *, seed: int, rank: int, world: int
    ) -> Feed:
        """Features in memory; none of the target for a trainer that looks at none."""
        assert self.task.source.labels is not None
        train, seen = self.split.train, self.split.seen
        return ArrayFeed(
            _rows(self.source, 0, train),
            self.task.source.labels[train],
            _rows(self.target, 0, seen) if trainer.adapts else None,
            batch_size=settings.batch_size,
            seed=seed,
            rank=rank,
            world=world,
        )

    def accuracy(self, classifier: Classifier) -> float:
        """Share of the calibration images that are classified right."""
        assert self.task.source.labels is not None
        rows = self.split.calibration
        logits = run_heads(classifier, _rows(self.source, 0, rows)).logits
        return float((logits.argmax(axis=1) == self.task.source.labels[rows]).mean())

    def write(self, folder: Path, classifier: Classifier) -> None:
        """Heads on the stored features; takes no time, and is done anew if it was broken off."""
        fingerprint = headed_fingerprint(self.source.identity["fingerprint"], classifier)
        shutil.rmtree(folder / BANK, ignore_errors=True)
        save_bank(self._bank(classifier, fingerprint), folder / BANK, durable=False)
        parts = (
            (SOURCE_TRAIN, self.task.source, self.source, self.split.train),
            (TARGET, self.task.target, self.target, self.split.held_out),
        )
        for name, images, features, rows in parts:
            made = run_heads(classifier, _rows(features, 0, rows))
            told = text_of(_origin(images, features, fingerprint))
            arrays = {
                "logits": made.logits,
                "labels": None if images.labels is None else images.labels[rows].astype(np.int64),
                "features": made.features,
                "ids": names_of(images, rows),
                "classes": None if self.task.classes is None else np.array(self.task.classes),
                "origin": told,
            }
            write_arrays(folder / name, arrays, durable=False)

    @property
    def _surrogates(self) -> Frozen:
        return self.source if self.harder is None else self.harder

    def _of_calibration(self, level: int) -> NDArray[np.float32]:
        if level and self.harder is not None:
            return np.asarray(self.harder.features(level), np.float32)
        return _rows(self.source, level, self.split.calibration)

    def _bank(self, classifier: Classifier, fingerprint: str) -> SurrogateBank:
        assert self.task.source.labels is not None
        rows = self.split.calibration
        labels = self.task.source.labels[rows]
        sets = []
        for level in (0, *self.severities):
            made = run_heads(classifier, self._of_calibration(level))
            corruption = self._surrogates.corruption if level else None
            sets.append(
                SurrogateSet(
                    made.logits,
                    labels,
                    set_name(level, corruption, level),
                    corruption=corruption,
                    severity=level,
                    features=None if level else made.features,
                )
            )
        origin = _origin(self.task.source, self.source, fingerprint)
        return SurrogateBank(sets, classes=self.task.classes, origin=origin)


def _rows(features: Frozen, which: int, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    return np.asarray(features.features(which)[rows], np.float32)


def _origin(images: ImageSet, features: Frozen, fingerprint: str) -> dict[str, Any]:
    """How scores were made, as JSON can hold it."""
    backbone = features.document["origin"]
    model = {
        **backbone["model"],
        "spec": None,
        "adapter": HeadedModel.__name__,
        "fingerprint": fingerprint,
    }
    return {
        "model": model,
        "images": {"name": images.name, "digest": backbone["images"]["digest"]},
        "dtype": "float32",
    }
