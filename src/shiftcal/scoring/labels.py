"""Labels of images as columns of a model's logits."""

from __future__ import annotations

import hashlib
import os
import re

import numpy as np

from shiftcal.checks import as_text, plain, to_array
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.datasets.labels import labels_for
from shiftcal.errors import InputError
from shiftcal.models import Model
from shiftcal.types import Labels

# Names of ImageNet's folders, whatever a model calls its classes.
_WNID = re.compile(r"n[0-9]{8}")


class ForeignLabels(InputError):
    """Labels of images do not match the classes of a model."""


def with_labels(images: ImageSet, labels: object, model: Model) -> ImageSet:
    """The images with these labels; names are classes of the images, or else of the model.

    Args:
        images: The images.
        labels: As for :func:`shiftcal.datasets.as_image_set`; ``None`` keeps the images' own.
        model: Whose classes names may be.
    """
    if labels is None:
        return images
    if isinstance(labels, (str, os.PathLike)):
        labels = labels_for(images, labels)
    given = plain(to_array(labels, name="labels"), "labels")
    if given.dtype.kind not in "US":
        return as_image_set(images, labels=given)
    names = set(as_text(given, "labels").ravel().tolist())
    own = images.classes is not None and names <= set(images.classes)
    theirs = not own and names & set(model.classes or ())
    return as_image_set(images, labels=given, classes=model.classes if theirs else None)


def model_labels(images: ImageSet, model: Model, k: int) -> Labels | None:
    """Labels as columns of the model's ``k`` logits; ``None`` if the images have none.

    Classes that both sides name are matched by name. Names that are numbers are columns. Without
    names on one side, and for identifiers of WordNet such as n01440764, order decides.

    Raises:
        ForeignLabels: If a label is not one of the model's classes.
    """
    if images.labels is None or not k:
        return None
    theirs, ours, labels = images.classes, model.classes, images.labels
    if theirs is not None:
        numbered = all(name.isdecimal() for name in theirs)
        wordnet = all(_WNID.fullmatch(name) for name in theirs)
        if ours is not None and (set(theirs) & set(ours) or not (numbered or wordnet)):
            column = {name: j for j, name in enumerate(ours)}
            used = [theirs[j] for j in np.unique(labels)]
            if strange := [name for name in used if name not in column]:
                raise ForeignLabels(
                    f"{images.name} has images of the class {strange[0]!r}, which is not among the "
                    f"model's, {_listed(ours)}. Leave it out, or name the model's classes as the "
                    "images do (classes=..., on the command line --classes)."
                )
            matched: Labels = np.array([column.get(name, -1) for name in theirs], np.intp)[labels]
            return matched
        if numbered:
            labels = np.array([int(name) for name in theirs])[labels]
        elif len(theirs) != k:
            raise ForeignLabels(
                f"{images.name} has {_listed(theirs)}, and the model {k}, so which is which is "
                "unknown. Name the model's classes in the order of its logits (classes=..., on "
                "the command line --classes), or give the images labels by its columns "
                "(labels=..., on the command line --labels FILE)."
            )
    if labels.max() >= k:
        raise ForeignLabels(
            f"labels of {images.name} must be from 0 to {k - 1}, the columns of the model's "
            f"logits; got {labels.max()}."
        )
    return labels


def digest_of_labels(labels: Labels | None) -> str | None:
    """A digest of labels; ``None`` without labels."""
    if labels is None:
        return None
    return hashlib.blake2b(labels.astype("<i8").tobytes(), digest_size=16).hexdigest()


def _listed(classes: tuple[str, ...]) -> str:
    many = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
    return f"{many} ({', '.join(classes[:3])}{', ...' if len(classes) > 3 else ''})"
