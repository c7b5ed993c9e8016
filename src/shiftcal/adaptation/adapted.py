"""A finished run: the adapted network, and everything calibration needs of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftcal._types import Floats
from shiftcal.adaptation._about import FILE, read_about
from shiftcal.adaptation._npz_arrays import read_arrays
from shiftcal.adaptation.mode import BANK, SOURCE_TRAIN, TARGET
from shiftcal.adaptation.settings import Settings
from shiftcal.adaptation.task import TaskSplit
from shiftcal.adaptation.training.history import Row, read_history
from shiftcal.errors import FileError, InputError, UnknownName
from shiftcal.scores import Scores, read_features, read_scores
from shiftcal.surrogates import SurrogateBank

if TYPE_CHECKING:
    from shiftcal.adaptation.base import Trainer
    from shiftcal.adaptation.network import Classifier
    from shiftcal.models import Model

SPLIT = "split.npz"


@dataclass(frozen=True, eq=False)
class Adapted:
    """What :func:`adapt` made, read from its folder as it is asked for.

    Attributes:
        folder: Where it is.
        document: What ``adapt.json`` in it says.
        finished_before: Whether the call that gave this found the run finished.
    """

    folder: Path
    document: dict[str, Any]
    finished_before: bool = False

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Adapted:
        """A run that is finished.

        Raises:
            FileError: If it is not, or there is none.
        """
        return cls(Path(folder), read_about(Path(folder)))

    def __repr__(self) -> str:
        target = self.accuracy
        known = "" if target is None else f", accuracy {target:.4f} on the held-out target"
        return f"<Adapted: {self.trainer.label} in {self.folder}{known}>"

    @cached_property
    def bank(self) -> SurrogateBank:
        """The surrogate bank of the calibration images; its clean set has features."""
        return SurrogateBank.load(self.folder / BANK)

    @cached_property
    def source_features(self) -> Floats:
        """Bottleneck features ``(n, d)`` of the source images that were trained on."""
        return read_features(self.folder / SOURCE_TRAIN)

    @cached_property
    def target(self) -> Scores:
        """Logits and features of the held-out target images, and their labels if known."""
        return read_scores(self.folder / TARGET)

    @cached_property
    def split(self) -> TaskSplit:
        """Which images were used for what."""
        file = self.folder / SPLIT
        parts = read_arrays(file)
        if parts.keys() != TaskSplit.__annotations__.keys():
            raise FileError(
                f"{file} must hold {', '.join(TaskSplit.__annotations__)}; it holds "
                f"{', '.join(parts)}. Remove the folder, and run again."
            )
        return TaskSplit(**parts)

    @cached_property
    def history(self) -> list[Row]:
        """How the losses went."""
        return read_history(self.folder)

    @property
    def trainer(self) -> Trainer:
        """What it was trained with."""
        from shiftcal.adaptation import get

        with self._reading("trainer and options"):
            made: Trainer = get(self.document["trainer"])(**self.document["options"])
        return made

    @property
    def settings(self) -> Settings:
        """How it was trained."""
        with self._reading("settings"):
            return Settings(**self.document["settings"])

    @property
    def accuracy(self) -> float | None:
        """On the held-out target, if its labels are known."""
        with self._reading("accuracy"):
            found: float | None = self.document["accuracy"]["target"]
        return found

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Say of entries that are not what they should be where they are."""
        try:
            yield
        except UnknownName:
            raise
        except (KeyError, TypeError, InputError) as error:
            raise FileError(
                f"{self.folder / FILE} is damaged, or of another version of shiftcal, in its "
                f"{what}: {error}. Remove the folder, and run again."
            ) from error

    def classifier(self, backbone: object = None) -> Classifier:
        """The trained network, from images to logits; from features, if they were frozen.

        Args:
            backbone: The torch module that was trained, if it was given as one: its weights are
                replaced in a copy.

        Raises:
            InputError: If the backbone cannot be made again without.
            FileError: If the weights are damaged, or of another network.
        """
        from shiftcal.adaptation.again import classifier_again

        return classifier_again(self, backbone)

    def model(self, backbone: object = None) -> Model:
        """A model of images: backbone, bottleneck and head, which gives bottleneck features too.

        It is what the bank and the target were scored with, for more images or more corruptions:
        ``sc.score(adapted.model(), images)``. With a frozen backbone the two may differ in the
        last digits.

        Args:
            backbone: What was given to :func:`adapt`, if that was not a text.

        Raises:
            InputError: If the backbone cannot be made again without.
        """
        from shiftcal.adaptation.again import model_again

        return model_again(self, backbone)
