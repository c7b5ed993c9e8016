"""Whether images suffice for what a plan does with them, and have labels that the model knows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from shiftcal.datasets import ImageSet
from shiftcal.errors import InputError, InputWarning
from shiftcal.models import Model, Outputs
from shiftcal.scoring.labels import ForeignLabels, model_labels
from shiftcal.scoring.setup import first_images
from shiftcal.studies.plan.plan import Plan

# Images in a bin of the ECE, below which noise is most of what it measures.
_A_BIN = 10


def check_enough(plan: Plan, images: ImageSet, sets: Mapping[str, ImageSet]) -> None:
    """Refuse sets that are too small for the plan; warn of an ECE of a few images a bin.

    Args:
        plan: The plan.
        images: To calibrate and to test on.
        sets: Natural targets by name.

    Raises:
        InputError: Naming both numbers.
    """
    known = images.labels
    k = 0 if known is None else len(np.unique(known))
    if plan.calibration.images < k:
        raise InputError(
            f"{plan.where} [calibration] images must be at least the {k:,} classes, or some have "
            f"no image to calibrate on; got {plan.calibration.images:,}."
        )
    for name, each in sets.items():
        if len(each) < plan.bins:
            raise InputError(
                f"the set {name} must have an image for each of the {plan.bins:,} bins of the ECE; "
                f"it has {len(each):,}. Lower bins, or leave it out."
            )
    test = len(images) - plan.calibration.images
    if plan.bins <= test < _A_BIN * plan.bins:
        warnings.warn(
            f"{test:,} images are left for the test, in {plan.bins:,} bins of the ECE: with fewer "
            f"than {_A_BIN} in a bin it is mostly noise, and too large. Lower bins, or "
            "[calibration] images.",
            InputWarning,
            stacklevel=4,
        )


def note_limit(plan: Plan, images: ImageSet) -> None:
    """Say so if a plan limits images that are fewer."""
    limit = plan.data.limit
    if limit is not None and limit > len(images):
        warnings.warn(
            f"{plan.where} [data] limit is {limit:,}, and there are {len(images):,} images: all of "
            "them are used.",
            InputWarning,
            stacklevel=4,
        )


def check_labels(model: Model, images: ImageSet, others: Mapping[str, ImageSet]) -> None:
    """Refuse labels that are none of the model's classes, before hours of scoring.

    Args:
        model: The model; without names of its classes, one image tells how many it has.
        images: To calibrate and to test on, whose labels are looked at before they are scored.
        others: All other sets by what they are called.

    Raises:
        InputError: Naming the set.
    """
    if not others:
        return
    k = len(model.classes) if model.classes else one_output(model, images).logits.shape[1]
    for name, each in others.items():
        try:
            model_labels(each, model, k)
        except ForeignLabels as error:
            raise InputError(f"{name}: {error}") from error


def one_output(model: Model, images: ImageSet) -> Outputs:
    """What the model makes of an image: how many classes and features it has.

    Of one image cannot be told whether logits are probabilities; the scoring tells.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return model.outputs(first_images(images, model, 1))
