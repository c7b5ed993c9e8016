"""What a training takes in and what is stored of it, whether the backbone is frozen or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.feeds.base import Feed
from shiftcal.adaptation.settings import Settings
from shiftcal.adaptation.task import Task, TaskSplit

if TYPE_CHECKING:
    from shiftcal.adaptation.network import Classifier, Objective

BANK, SOURCE_TRAIN, TARGET = "bank", "source-train.npz", "target.npz"


class Mode(ABC):
    """Frozen features, or images through a whole network.

    Attributes:
        task: The images.
        split: Which of them are used for what.
    """

    task: Task
    split: TaskSplit

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Everything about the inputs that decides the result of a training, for JSON."""

    @property
    @abstractmethod
    def backbone(self) -> dict[str, Any]:
        """What the backbone is: ``spec``, ``n_features`` and more, for JSON."""

    @abstractmethod
    def network(self, trainer: Trainer, settings: Settings) -> Objective:
        """A new network; its weights are drawn from torch's generator."""

    @abstractmethod
    def feed(
        self, trainer: Trainer, settings: Settings, *, seed: int, rank: int, world: int
    ) -> Feed:
        """The batches of a training."""

    @abstractmethod
    def accuracy(self, classifier: Classifier) -> float:
        """Share of the calibration images that are classified right."""

    @abstractmethod
    def write(self, folder: Path, classifier: Classifier) -> None:
        """Store what calibration needs: the bank, and scores of source-train and target.

        Given again after it was broken off, it goes on, or begins anew where that takes no time.
        """
