"""Labels that a caller gives beside the images."""

from __future__ import annotations

import os

from shiftcal._checks import as_text, plain, to_array
from shiftcal.datasets import ImageSet, as_image_set
from shiftcal.datasets.label_files import labels_for
from shiftcal.models import Model


def with_labels(images: ImageSet, labels: object, model: Model) -> ImageSet:
    """The images with these labels; names are the images' own classes, or else the model's.

    Args:
        images: The images.
        labels: As for :func:`shiftcal.datasets.as_image_set`; ``None`` leaves those there are.
        model: Whose classes names may be.

    Raises:
        InputError: If they do not fit the images, or a name is none of these classes.
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
