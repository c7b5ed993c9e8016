"""Labels of images from files, names and class groups."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_groups
from shiftcal.datasets.image_set import ImageSet
from shiftcal.errors import FileError, InputError, MissingData, UnknownName
from shiftcal.files import naming
from shiftcal.scores import LabelFile, read_label_file
from shiftcal.scores_io import member_of

_ADVICE = (
    "Names are relative to the folder of the images; without such a column, labels are in order."
)


def read_labels(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels ``(n,)`` in the order of a file: class indices, or names.

    Raises:
        FileError: If the file is missing, damaged, or no file of labels.
    """
    with naming(path):
        return _read(path).complete()


def labels_for(images: ImageSet, path: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels ``(n,)`` of these images, one each.

    A table with a column ``file``, ``path`` or ``id``, or an ``.npz`` file with ``ids``, says which
    image each label is of, and may have rows of others. Other files have a label for every image,
    in order.

    Raises:
        FileError: If the file cannot be read, or lacks the label of an image.
    """
    given = _read(path)
    if given.keys:
        try:
            found = given.match(images.ids(range(len(images))), advice=_ADVICE)
        except InputError as error:
            raise FileError(
                f"{path} must have the label of every image of {images.name}: {error}"
            ) from error
        return given.labels[found]
    labels = read_labels(path)
    if len(labels) != len(images):
        raise FileError(
            f"{path} must have a label for every image of {images.name}, {len(images):,} in "
            f"order; it has {len(labels):,}. A column 'file' in a .csv says whose they are."
        )
    return labels


def _read(path: str | os.PathLike[str]) -> LabelFile:
    file, _ = member_of(path)
    if not file.exists():
        raise MissingData(f"{file} does not exist. Check the path.")
    return read_label_file(path)


def named_labels(
    labels: Sequence[int | str | None],
    classes: Sequence[str] | None,
    *,
    ids: Sequence[object],
    name: str,
) -> tuple[Sequence[str] | None, NDArray[Any] | None]:
    """The names of the classes and the labels of a container; either may be ``None``.

    Labels that are all names give the classes, sorted, unless these are known. ``-1`` for all is
    how the labels of a test set are kept secret: there are none then.

    Args:
        labels: One per image; ``None`` where it has none.
        classes: Names of the classes, if they are known.
        ids: Names of the images.
        name: Of the set, for messages.

    Raises:
        FileError: If only some images have a label, or names and numbers are mixed.
    """
    if all(label is None for label in labels) or all(label == -1 for label in labels):
        return classes, None
    kinds = {type(label) for label in labels}
    if len(kinds) > 1:
        odd = next(i for i, label in enumerate(labels) if type(label) is not type(labels[0]))
        raise FileError(
            f"{name}: either no image has a label, or all have a number, or all have a name; "
            f"{ids[0]} has {labels[0]!r:.40} and {ids[odd]} has {labels[odd]!r:.40}."
        )
    if kinds == {str} and classes is None:
        classes = sorted({str(label) for label in labels})
    return classes, np.array(labels)


# 16-class-ImageNet: ImageNet's classes in sixteen groups that people name at a glance.
#
# From Geirhos and others, "Generalisation in humans and deep neural networks" (2018), as published
# with their "ImageNet-trained CNNs are biased towards texture" (2019).

# Name -> indices among the 1,000 classes in the order of their wnids. The authors left some kinds
# out: a cock is no bird here, a boxer no dog.
GROUPS: dict[str, tuple[int, ...]] = {
    "airplane": (404,),
    "bear": (294, 295, 296, 297),
    "bicycle": (444, 671),
    "bird": (
        *(8, *range(10, 17), 18, 19, 20, 22, 23, 24),
        *(*range(80, 84), *range(87, 97), 98, 99, 100),
        *(*range(127, 134), *range(135, 146)),
    ),
    "boat": (472, 554, 625, 814, 914),
    "bottle": (440, 720, 737, 898, 899, 901, 907),
    "car": (436, 511, 817),
    "cat": (281, 282, 283, 284, 285, 286),
    "chair": (423, 559, 765, 857),
    "clock": (409, 530, 892),
    "dog": (
        *(*range(152, 192), *range(193, 204), *range(205, 227), *range(228, 242)),
        *(*range(243, 251), *range(252, 258), 259, *range(261, 264), *range(265, 269)),
    ),
    "elephant": (385, 386),
    "keyboard": (508, 878),
    "knife": (499,),
    "oven": (766,),
    "truck": (555, 569, 656, 675, 717, 734, 864, 867),
}


def class_groups(name: str) -> dict[str, tuple[int, ...]]:
    """Published groups of classes: name -> indices of its members.

    Args:
        name: ``"imagenet16"``, the sixteen groups of 16-class-ImageNet among the 1,000 classes of
            ImageNet in the order of their wnids.

    Raises:
        UnknownName: If none are called so.
    """
    if name != "imagenet16":
        raise UnknownName(f"no groups of classes are called {name!r}; there is 'imagenet16'.")
    return dict(GROUPS)


def grouped(
    images: ImageSet, groups: Mapping[str, Sequence[int]], *, name: str | None = None
) -> ImageSet:
    """The images whose class is in a group, labelled by their groups.

    Args:
        images: Images with labels.
        groups: Name -> class indices; two groups or more, none empty, and no class in two of them.
            Their order is that of the new classes.
        name: What the set is called; by default ``"... of <name>"``.

    Raises:
        InputError: If the images have no labels, none is in a group, or the groups name classes
            that the images have not.
    """
    if images.labels is None:
        raise InputError(f"{images.name} must have labels to be grouped by; it has none.")
    known = check_groups(groups, k=len(images.classes) if images.classes else None)
    highest = max(int(images.labels.max()), *(members[-1] for members in known.values()))
    place = np.full(highest + 1, -1, np.intp)
    for index, members in enumerate(known.values()):
        place[list(members)] = index
    labels = place[images.labels]
    kept = np.flatnonzero(labels >= 0)
    if not kept.size:
        raise InputError(
            f"{images.name} must have images of the groups, {', '.join(list(known)[:3])} ...; it "
            "has none of any. Groups name classes by their index."
        )
    return images.subset(kept, name=name).relabelled(labels[kept], classes=list(known))
