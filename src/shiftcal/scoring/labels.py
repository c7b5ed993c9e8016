"""Labels of images, as the model's classes."""

from __future__ import annotations

import hashlib

import numpy as np

from shiftcal._types import Labels
from shiftcal.datasets import ImageSet
from shiftcal.errors import InputError
from shiftcal.models import Model


def model_labels(images: ImageSet, model: Model, k: int) -> Labels | None:
    """Labels as columns of the model's logits; ``None`` if the images have none.

    Classes that both the images and the model name are matched by name, whatever their order.
    Without names on one side, or with names that have nothing in common, they are matched by
    number, and there must be equally many.

    Args:
        images: The images.
        model: The model.
        k: Columns of its logits.

    Raises:
        InputError: If a label is not one of the model's classes.
    """
    if images.labels is None:
        return None
    theirs, ours = images.classes, model.classes
    if theirs is not None and ours is not None and set(theirs) & set(ours):
        return _by_name(images, theirs, ours)
    if theirs is not None and len(theirs) != k:
        raise InputError(
            f"{images.name} has {len(theirs)} classes ({', '.join(theirs[:3])}, ...), and the "
            f"model {k}, so that which is which cannot be told. Name the model's classes in the "
            "order of its logits (classes=...), or give the images labels by its columns: "
            "as_image_set(images, labels=..., classes=...)."
        )
    most = int(images.labels.max())
    if most >= k:
        raise InputError(
            f"labels of {images.name} must be from 0 to {k - 1}, the columns of the model's "
            f"logits; got {most}."
        )
    return images.labels


def digest_of_labels(labels: Labels | None) -> str | None:
    """By which other labels are noticed; ``None`` if there are none."""
    if labels is None:
        return None
    return hashlib.blake2b(labels.astype("<i8").tobytes(), digest_size=16).hexdigest()


def _by_name(images: ImageSet, theirs: tuple[str, ...], ours: tuple[str, ...]) -> Labels:
    assert images.labels is not None
    column = {name: j for j, name in enumerate(ours)}
    used = [theirs[j] for j in np.unique(images.labels)]
    strange = [name for name in used if name not in column]
    if strange:
        raise InputError(
            f"{images.name} has images of the class {strange[0]!r}, which is not among the "
            f"model's {len(ours)} classes ({', '.join(ours[:3])}, ...). Leave it out, or name the "
            "model's classes as the images do."
        )
    columns = np.array([column.get(name, -1) for name in theirs], np.intp)
    matched: Labels = columns[images.labels]
    return matched
