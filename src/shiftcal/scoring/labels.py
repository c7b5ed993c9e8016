"""Labels of images, as the model's classes."""

from __future__ import annotations

import hashlib
import re

import numpy as np

from shiftcal._types import Labels
from shiftcal.datasets import ImageSet
from shiftcal.errors import InputError
from shiftcal.models import Model

# How ImageNet's folders are called, whatever a model calls its classes.
_WNID = re.compile(r"n[0-9]{8}")

# Labels that are copied at once.
_BLOCK = 1 << 16


class ForeignLabels(InputError):
    """Labels of images are not among the classes of a model, or which are which cannot be told."""


def model_labels(images: ImageSet, model: Model, k: int) -> Labels | None:
    """Labels as columns of the model's logits; ``None`` if the images have none.

    Classes that both the images and the model name are matched by name, whatever their order.
    Names of images that are numbers are columns. Without names on one side, and where the images'
    are identifiers of WordNet such as n01440764, they are matched by their order, and there must be
    equally many.

    Args:
        images: The images.
        model: The model.
        k: Columns of its logits.

    Raises:
        ForeignLabels: If a label is not one of the model's classes.
    """
    if images.labels is None:
        return None
    theirs, ours = images.classes, model.classes
    if theirs is not None:
        if ours is not None and set(theirs) & set(ours):
            return _by_name(images, theirs, ours)
        if all(name.isdecimal() for name in theirs):
            return _in_range(images, np.array([int(name) for name in theirs])[images.labels], k)
        if ours is not None and not all(_WNID.fullmatch(name) for name in theirs):
            return _by_name(images, theirs, ours)
        if len(theirs) != k:
            raise ForeignLabels(
                f"{images.name} has {_listed(theirs)}, and the model {k}, so that which is which "
                "cannot be told. Name the model's classes in the order of its logits "
                "(classes=..., on the command line --classes), or give the images labels by its "
                "columns (labels=..., on the command line --labels FILE)."
            )
    return _in_range(images, images.labels, k)


def _in_range(images: ImageSet, labels: Labels, k: int) -> Labels:
    if labels.max() >= k:
        raise ForeignLabels(
            f"labels of {images.name} must be from 0 to {k - 1}, the columns of the model's "
            f"logits; got {labels.max()}."
        )
    return labels


def digest_of_labels(labels: Labels | None) -> str | None:
    """By which other labels are noticed; ``None`` if there are none."""
    if labels is None:
        return None
    whole = hashlib.blake2b(digest_size=16)
    for start in range(0, len(labels), _BLOCK):
        whole.update(labels[start : start + _BLOCK].astype("<i8").tobytes())
    return whole.hexdigest()


def _by_name(images: ImageSet, theirs: tuple[str, ...], ours: tuple[str, ...]) -> Labels:
    assert images.labels is not None
    column = {name: j for j, name in enumerate(ours)}
    used = [theirs[j] for j in np.unique(images.labels)]
    strange = [name for name in used if name not in column]
    if strange:
        raise ForeignLabels(
            f"{images.name} has images of the class {strange[0]!r}, which is not among the "
            f"model's, {_listed(ours)}. Leave it out, or name the model's classes as the images do."
        )
    columns = np.array([column.get(name, -1) for name in theirs], np.intp)
    matched: Labels = columns[images.labels]
    return matched


def _listed(classes: tuple[str, ...]) -> str:
    many = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
    return f"{many} ({', '.join(classes[:3])}{', ...' if len(classes) > 3 else ''})"
