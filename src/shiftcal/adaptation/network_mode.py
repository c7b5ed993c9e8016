"""Training and outputs of a whole network, from images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from shiftcal.adaptation.again import adapted_model
from shiftcal.adaptation.backbones.base import Backbone
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.devices import Group
from shiftcal.adaptation.feeds.augment.pipelines import Pipeline, training_transform
from shiftcal.adaptation.feeds.base import Feed
from shiftcal.adaptation.feeds.images import ImageFeed
from shiftcal.adaptation.image_content import content_digest
from shiftcal.adaptation.inputs import Wanted
from shiftcal.adaptation.mode import BANK, SOURCE_TRAIN, TARGET, Mode
from shiftcal.adaptation.network import Classifier, Objective, make_objective
from shiftcal.adaptation.settings import Settings
from shiftcal.adaptation.small_images import are_small, small_feed
from shiftcal.adaptation.task import Task, TaskSplit
from shiftcal.adaptation.weights import weights_digest
from shiftcal.datasets import ImageSet
from shiftcal.errors import InputError
from shiftcal.scoring import score, score_file
from shiftcal.scoring.run import Reporting
from shiftcal.surrogates.build import build_bank
from shiftcal.surrogates.conditions import conditions_of
from shiftcal.surrogates.synthesize import Options


@dataclass(frozen=True, eq=False)
class NetworkMode(Mode):
    """A backbone that is trained along.

    Attributes:
        task: The images.
        split: Which of them are used for what.
        made: The backbone, with the weights it begins with.
        transform: What is done to training images, by name.
        corruption: What makes the harder sets of the bank.
        severities: How much of it.
        workers: Processes that read training images; 0 is none.
        reporting: How progress is told.
        group: The processes that take part.
    """

    task: Task
    split: TaskSplit
    made: Backbone
    transform: str
    corruption: object
    severities: Sequence[int]
    workers: int = 0
    reporting: Reporting = field(default_factory=Reporting)
    group: Group = field(default_factory=Group)

    @classmethod
    def of(cls, wanted: Wanted, made: Backbone, transform: str) -> NetworkMode:
        """A backbone for what is wanted."""
        return cls(
            wanted.task,
            wanted.split,
            made,
            transform,
            wanted.surrogates.corruption,
            wanted.surrogates.severities,
            workers=wanted.workers,
            reporting=wanted.reporting,
            group=wanted.group,
        )

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The images, what is done to them, and what the backbone begins with."""
        return {
            "backbone": weights_digest(self.made.module),
            "preprocessing": self.made.preprocessing.to_dict(),
            "transform": self.transform,
            "source": self._digest(self.task.source),
            "target": self._digest(self.task.target),
        }

    def _digest(self, images: ImageSet) -> str:
        """Every image is read, which is enough if one process does it."""
        found = content_digest(images, self.reporting) if self.group.main else None
        told: str = self.group.told(found)
        return told

    @property
    def backbone(self) -> dict[str, Any]:
        """What makes it again."""
        return {
            "spec": self.made.spec,
            "n_features": self.made.n_features,
            "preprocessing": self.made.preprocessing.to_dict(),
        }

    def network(self, trainer: Trainer, settings: Settings) -> Objective:
        """The backbone with new heads."""
        module, n_features = self.made.module, self.made.n_features
        k, width = self.task.n_classes, settings.bottleneck
        return make_objective(trainer, module, n_features, k, width=width)

    def feed(
        self, trainer: Trainer, settings: Settings, *, seed: int, rank: int, world: int
    ) -> Feed:
        """Images; none of the target for a trainer that looks at none."""
        source = self.task.source.subset(self.split.train)
        target = self.task.target.subset(self.split.seen).relabelled(None)
        others = target if trainer.adapts else None
        pipeline, preprocessing = self._pipeline, self.made.preprocessing
        options = {"batch_size": settings.batch_size, "seed": seed, "rank": rank, "world": world}
        if are_small(pipeline, self.made.side, source, others):
            return small_feed(source, others, pipeline, preprocessing, **options)
        return ImageFeed(
            source,
            source.labels,
            others,
            transform=pipeline,
            preprocessing=preprocessing,
            workers=self.workers,
            **options,
        )

    def accuracy(self, classifier: Classifier) -> float:
        """Share of the calibration images that are classified right."""
        model = adapted_model(classifier, self.made.preprocessing, self.task.classes)
        made = score(model, self._calibration, progress=False)
        return float((made.values.argmax(axis=1) == made.labels).mean())

    def write(self, folder: Path, classifier: Classifier) -> None:
        """The network on images; what is scored is not scored again."""
        model = adapted_model(classifier, self.made.preprocessing, self.task.classes)
        build_bank(
            model,
            self._calibration,
            folder / BANK,
            conditions=conditions_of(self.corruption, list(self.severities)),
            options=Options(reporting=self.reporting),
        )
        for name, images, rows in (
            (SOURCE_TRAIN, self.task.source, self.split.train),
            (TARGET, self.task.target, self.split.held_out),
        ):
            score_file(model, images.subset(rows), folder / name, reporting=self.reporting)

    @property
    def _calibration(self) -> ImageSet:
        return self.task.source.subset(self.split.calibration)

    @property
    def _pipeline(self) -> Pipeline:
        side = self.made.side
        if side is not None:
            return training_transform(self.transform, side)
        if self.transform != "none":
            raise InputError(
                f"transform {self.transform!r} must know how large images are, and the backbone's "
                "preprocessing does not say. Say resize and crop there, or transform='none'."
            )
        return Pipeline(self.made.preprocessing.framing)
