"""A task: labelled source images, target images, and which of them are used for what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets import ImageSet, source_split, target_split
from shiftcal.errors import InputError

# Classes that are named in a message.
_NAMED = 3


@dataclass(frozen=True, eq=False)
class TaskSplit:
    """The paper's four parts, as sorted indices.

    Attributes:
        train: Of the source: labelled, trained on.
        calibration: The rest of the source: labelled, calibrated on.
        seen: Of the target: trained on, without labels.
        held_out: The rest of the target, which training never sees: tested on.
    """

    train: NDArray[np.intp]
    calibration: NDArray[np.intp]
    seen: NDArray[np.intp]
    held_out: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Task:
    """From which images to which: both of the same classes in the same order.

    Attributes:
        source: Images with labels.
        target: Images; their labels, if they have any, judge the result and nothing else.

    Raises:
        InputError: If the source has no labels, or the two differ in their classes.
    """

    source: ImageSet
    target: ImageSet

    def __post_init__(self) -> None:
        if self.source.labels is None:
            raise InputError(
                f"{self.source.name} has no labels, and what a network learns from needs them. "
                "Put the images into one folder a class, or make them an image set with labels."
            )
        ours, theirs = self.source.classes, self.target.classes
        if ours is not None and theirs is not None and ours != theirs:
            raise InputError(
                f"{self.target.name} must have the classes of {self.source.name} in the same "
                f"order; {_difference(ours, theirs)} Bring both to the same names."
            )
        if self.n_classes < 2:
            raise InputError(f"{self.source.name} must have two classes or more; it has one.")
        _check_range(self.source, self.n_classes)
        _check_range(self.target, self.n_classes)

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Their names, if one of the two sets tells them."""
        return self.source.classes or self.target.classes

    @property
    def n_classes(self) -> int:
        """How many there are; without names, as many as the labels of the source speak of."""
        if self.classes is not None:
            return len(self.classes)
        assert self.source.labels is not None
        return int(self.source.labels.max()) + 1

    def split(self, seed: int = 0) -> TaskSplit:
        """Four fifths of the source to train on, class by class; one half of the target.

        Args:
            seed: Decides which.

        Raises:
            InputError: If there are too few images.
        """
        _check_enough(self.source, 3, "trained on and calibrated on")
        _check_enough(self.target, 2, "seen in training and held out")
        train, calibration = source_split(self.source.labels, train=0.8, seed=seed)
        seen, held_out = target_split(len(self.target), first=0.5, seed=seed)
        return TaskSplit(train, calibration, seen, held_out)


def _check_range(images: ImageSet, n_classes: int) -> None:
    if images.labels is not None and images.labels.max() >= n_classes:
        raise InputError(
            f"labels of {images.name} must be from 0 to {n_classes - 1}, the classes of the "
            f"task; got {images.labels.max()}."
        )


def _check_enough(images: ImageSet, least: int, parts: str) -> None:
    if len(images) < least:
        raise InputError(
            f"{images.name} must have at least {least} images, some to be {parts}; it has "
            f"{len(images)}. Take more."
        )


def _difference(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str:
    absent = [name for name in ours if name not in theirs]
    strange = [name for name in theirs if name not in ours]
    said = [f"it lacks {_some(absent)}"] if absent else []
    if strange:
        said.append(f"it has {_some(strange)}, which the source has not")
    if said:
        return f"{' and '.join(said)}."
    place = next(j for j, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    return f"class {place} is {ours[place]!r} in the one and {theirs[place]!r} in the other."


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(map(repr, names[:_NAMED]))}{more}"
