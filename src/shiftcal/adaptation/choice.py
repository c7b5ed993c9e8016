"""Which trainer, with which settings: by name, recipe and what the user wants otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from shiftcal._checks import check_choice
from shiftcal.adaptation import get
from shiftcal.adaptation.backbones.recipes import recipe_of
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.feeds.augment.pipelines import TRANSFORMS
from shiftcal.adaptation.settings import Settings
from shiftcal.errors import InputError

# Says that the reference library's defaults are wanted, with a frozen backbone too.
DEFAULT = "default"
FROZEN = "frozen"
# What is done to training images, where a data set has its own way.
_TRANSFORMS = MappingProxyType({"visda": "center-crop", "digits": "none"})


@dataclass(frozen=True)
class Choice:
    """A trainer that is ready.

    Attributes:
        name: What it is called.
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
        name: One of :func:`shiftcal.adaptation.names`.
        recipe: One of the trainer's; ``"default"`` is the reference library's defaults. By default
            those too, but for a backbone that has a recipe of its own, as ``"digits-cnn"`` has
            ``"digits"``, and with a frozen backbone the trainer's recipe ``"frozen"``.
        changes: Options of the trainer and settings of the training, by name.
        transform: What is done to training images; by default what the recipe's data set, or the
            trainer, has. None is done with a frozen backbone.
        frozen: Whether the backbone is.
        backbone: What is trained, if it may have a recipe of its own.

    Raises:
        UnknownName: If there is no such trainer, or no such recipe.
        InputError: If an option or the transform cannot be used.
    """
    _check_transform(transform, frozen=frozen)
    kind: type[Trainer] = get(name)
    if recipe is None:
        suited = FROZEN if frozen else recipe_of(backbone)
        recipe = suited if suited is not None and suited in kind.recipes else DEFAULT
    trainer, settings = kind.prepared(None if recipe == DEFAULT else recipe, changes)
    own = _TRANSFORMS.get(recipe, kind.transform)
    return Choice(_plain(name), trainer, settings, recipe, transform or own)


def _check_transform(transform: str | None, *, frozen: bool) -> None:
    if transform is None:
        return
    check_choice(transform, TRANSFORMS, name="transform")
    if frozen:
        raise InputError(
            f"transform {transform!r} is done to images as they are trained on, and a frozen "
            "backbone sees none of them then. Leave it out, or leave out frozen."
        )


def _plain(name: str) -> str:
    return name.replace("_", "-").lower()
