"""What a run takes in: the task, and the trainer with its settings. Nothing here needs PyTorch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation import get
from shiftcal.adaptation.augment import TRANSFORMS
from shiftcal.adaptation.trainer import Settings, Trainer
from shiftcal.checks import check_choice
from shiftcal.datasets import ImageSet, source_split, target_split
from shiftcal.errors import InputError
from shiftcal.numerics.jit import thread_count
from shiftcal.registry import TRAINERS
from shiftcal.scoring.run import Reporting, showing
from shiftcal.scoring.work import SHARD_SIZE

# The reference library's defaults, also with a frozen backbone.
DEFAULT = "default"
# Recipes of backbones: untrained networks need settings of their own.
_BACKBONE_RECIPES = {"digits-cnn": "digits"}
# Transforms of data sets whose recipe differs from the trainer's.
_TRANSFORMS = {"visda": "center-crop", "digits": "none"}
# An image set keeps its digest in this attribute, which travels to other processes with it.
_DIGEST = "_content_digest"


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
    """Source and target images of the same classes in the same order.

    Attributes:
        source: Images with labels.
        target: Images; labels, if there are any, only judge the result.

    Raises:
        InputError: If the source has no labels, or the two differ in their classes.
    """

    source: ImageSet
    target: ImageSet

    def __post_init__(self) -> None:
        if self.source.labels is None:
            raise InputError(
                f"{self.source.name} has no labels, and the source needs them. Put the images into "
                "one folder per class, or pass an image set with labels."
            )
        ours, theirs = self.source.classes, self.target.classes
        if ours is not None and theirs is not None and ours != theirs:
            absent = [name for name in ours if name not in theirs][:3]
            unknown = [name for name in theirs if name not in ours][:3]
            place = next((j for j, (a, b) in enumerate(zip(ours, theirs)) if a != b), len(ours))  # noqa: B905
            raise InputError(
                f"{self.target.name} must have the classes of {self.source.name} in the same "
                f"order; they differ from class {place} on"
                + (f", it lacks {', '.join(map(repr, absent))}" if absent else "")
                + (f", it has also {', '.join(map(repr, unknown))}" if unknown else "")
                + ". Bring both to the same names."
            )
        if self.n_classes < 2:
            raise InputError(f"{self.source.name} must have two classes or more; it has one.")
        for images in (self.source, self.target):
            if images.labels is not None and images.labels.max() >= self.n_classes:
                raise InputError(
                    f"labels of {images.name} must be from 0 to {self.n_classes - 1}, the classes "
                    f"of the task; got {images.labels.max()}."
                )

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Their names, if one of the two sets has them."""
        return self.source.classes or self.target.classes

    @property
    def n_classes(self) -> int:
        """How many there are; without names, one more than the largest label of the source."""
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
        for images, least in ((self.source, 3), (self.target, 2)):
            if len(images) < least:
                raise InputError(
                    f"{images.name} must have at least {least} images, to be split into parts; it "
                    f"has {len(images)}."
                )
        train, calibration = source_split(self.source.labels, train=0.8, seed=seed)
        seen, held_out = target_split(len(self.target), first=0.5, seed=seed)
        return TaskSplit(train, calibration, seen, held_out)


def content_digest(images: ImageSet, reporting: Reporting) -> str:
    """The digest of all images that scoring stores; computed once per set.

    Args:
        images: The images; they must not change from now on.
        reporting: How progress is shown.
    """
    if _DIGEST not in vars(images):
        whole = hashlib.blake2b(digest_size=16)
        doing, n = f"reading {images.name}", len(images)
        with showing(doing, n, shown=reporting.shown, line=reporting.line) as advance:
            for start in range(0, n, SHARD_SIZE):
                rows = np.arange(start, min(start + SHARD_SIZE, n))
                whole.update(images.digest(rows, threads=thread_count()).encode())
                advance(len(rows), kept=False)
        remember_digest(images, whole.hexdigest())
    digest: str = vars(images)[_DIGEST]
    return digest


def remember_digest(images: ImageSet, digest: str) -> None:
    """Save reading the images again, after scoring has computed their digest."""
    vars(images)[_DIGEST] = digest


@dataclass(frozen=True)
class Choice:
    """A trainer with its settings.

    Attributes:
        name: Of the trainer.
        trainer: The trainer.
        settings: How the network is trained.
        recipe: Which recipe that is.
        transform: What is done to training images, by name.
    """

    name: str
    trainer: Trainer
    settings: Settings
    recipe: str
    transform: str


def choose(
    name: str,
    *,
    recipe: str | None = None,
    changes: Mapping[str, Any] | None = None,
    transform: str | None = None,
    frozen: bool = False,
    backbone: object = None,
) -> Choice:
    """A trainer with its settings.

    Args:
        name: One of :func:`shiftcal.adaptation.names`, or ``package.module:Class``.
        recipe: One of the trainer's, or ``"default"``, the reference library's defaults. Default:
            ``"frozen"`` with a frozen backbone, ``"digits"`` for ``"digits-cnn"``, else
            ``"default"``.
        changes: Options of the trainer and settings of the training, by name.
        transform: What is done to training images. Default: that of the recipe's data set, or of
            the trainer. Not for a frozen backbone.
        frozen: Whether the backbone is frozen.
        backbone: What is trained, if it may have a recipe.

    Raises:
        UnknownName: If there is no such trainer, or no such recipe.
        InputError: If an option or the transform cannot be used.
    """
    if transform is not None:
        check_choice(transform, TRANSFORMS, name="transform")
        if frozen:
            raise InputError(
                f"transform {transform!r} changes training images, and a frozen backbone sees "
                "none. Leave out transform, or frozen."
            )
    kind: type[Trainer] = get(name)
    if recipe is None:
        suited = _BACKBONE_RECIPES.get(backbone) if isinstance(backbone, str) else None
        suited = "frozen" if frozen else suited
        recipe = suited if suited is not None and suited in kind.recipes else DEFAULT
    trainer, settings = kind.prepared(None if recipe == DEFAULT else recipe, changes)
    transform = transform or _TRANSFORMS.get(recipe, kind.transform)
    return Choice(TRAINERS.canonical(name), trainer, settings, recipe, transform)
