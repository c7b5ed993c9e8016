"""Labels of images: from files, in groups of classes, and the splits that they decide."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count, check_fraction, check_groups, plain, to_array
from shiftcal.datasets.image_set import ImageSet
from shiftcal.errors import InputError, UnknownName
from shiftcal.files import naming
from shiftcal.scores import read_label_file

Indices = NDArray[np.intp]
_KEYS = ("file", "path", "id")
_ADVICE = (
    "Names are relative to the folder of the images; without such a column, labels are in order."
)


def read_labels(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels ``(n,)`` in the order of a file: class indices, or names.

    Raises:
        FileError: If the file is missing, damaged, or no file of labels.
    """
    with naming(path):
        return read_label_file(path, keys=_KEYS).complete()


def labels_for(images: ImageSet, path: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels ``(n,)`` of these images, one each.

    A table with a column ``file``, ``path`` or ``id``, or an ``.npz`` file with ``ids``, says which
    image each label is of, and may have rows of others. Other files have a label for every image,
    in order.

    Raises:
        FileError: If the file cannot be read, or lacks the label of an image.
    """
    given = read_label_file(path, keys=_KEYS)
    with naming(path):
        if given.names is not None:
            return given.labels[given.match(images.ids(range(len(images))), advice=_ADVICE)]
        labels = given.complete()
        if len(labels) != len(images):
            raise InputError(
                f"labels must be given for every image of {images.name}, {len(images):,} in order; "
                f"it has {len(labels):,}. A column 'file' in a .csv says whose they are."
            )
        return labels


# 16-class-ImageNet: ImageNet's classes in sixteen groups that people name at a glance. From Geirhos
# and others, "Generalisation in humans and deep neural networks" (2018), as published with their
# "ImageNet-trained CNNs are biased towards texture" (2019). Name -> indices among the 1,000 classes
# in the order of their wnids. The authors left some kinds out: a cock is no bird here, a boxer no
# dog.
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


# The paper's ways to cut a set in two. Every image is given a number, and those with the smallest
# go into the first part. The number of image i is word i of the generator Philox4x64-10 with the
# key (seed, purpose), whose stream is fixed by its definition (Salmon and others, 2011): the same
# parts on every machine and with every version of numpy. The purpose, a constant of each function,
# keeps its choice independent of the others' under the same seed.
_CALIBRATION, _SOURCE, _TARGET = 1, 2, 3


def calibration_split(labels: object, *, n: int = 5000, seed: int = 0) -> tuple[Indices, Indices]:
    """Indices for calibration and for the test, both sorted.

    Every class has its share of the ``n``, rounded by largest remainders, where the lower class
    comes first among equals. All corrupted versions of a set have its labels, so one choice of
    images serves them all: no image is calibrated on in one version and tested on in another.

    Args:
        labels: ``(m,)``, class indices or names.
        n: Images for calibration, exactly.
        seed: Decides which.

    Raises:
        InputError: If there are not more than ``n`` images.
    """
    return _cut(_classes(labels), check_count(n, name="n"), seed, _CALIBRATION)


def source_split(
    n_or_labels: object, *, train: float = 0.8, seed: int = 0
) -> tuple[Indices, Indices]:
    """Indices to train on and to validate with, both sorted.

    Args:
        n_or_labels: How many images there are; or their labels ``(n,)``, by which every class has
            its share in both parts.
        train: Fraction to train on; the number is rounded to the nearest, a half up.
        seed: Decides which.

    Raises:
        InputError: If a part would be empty.
    """
    if isinstance(n_or_labels, (int, np.integer)):
        classes = np.zeros(check_count(n_or_labels, name="n", least=2), np.intp)
    else:
        classes = _classes(n_or_labels)
    return _cut(classes, check_fraction(train, name="train"), seed, _SOURCE)


def target_split(n: int, *, first: float = 0.5, seed: int = 0) -> tuple[Indices, Indices]:
    """Indices of the images to adapt to and of those to test on, both sorted.

    No labels are asked for, since a target has none.

    Args:
        n: How many images there are.
        first: Fraction to adapt to; the number is rounded to the nearest, a half up.
        seed: Decides which.

    Raises:
        InputError: If a part would be empty.
    """
    classes = np.zeros(check_count(n, name="n", least=2), np.intp)
    return _cut(classes, check_fraction(first, name="first"), seed, _TARGET)


def _cut(classes: Indices, first: float, seed: int, purpose: int) -> tuple[Indices, Indices]:
    """The first part, of a number or fraction of the images, and the rest."""
    total = len(classes)
    n = first if isinstance(first, int) else int(np.floor(first * total + 0.5))
    if not 0 < n < total:
        raise InputError(
            f"a split of {total:,} images must leave some for both parts; {n:,} were asked for in "
            "the first."
        )
    seed = check_count(seed, name="seed", least=0, most=2**64 - 1)
    words = np.random.Philox(key=np.array([seed, purpose], np.uint64)).random_raw(total)
    counts = np.bincount(classes)
    # Of every class n * count / total, rounded by largest remainders to the sum n.
    shares, remainders = np.divmod(n * counts, total)
    shares[np.argsort(-remainders, kind="stable")[: n - shares.sum()]] += 1
    # By class, then by number; equal numbers keep the order of the images.
    order = np.lexsort((words, classes))
    chosen = np.zeros(total, bool)
    for start, share in zip(np.cumsum(counts) - counts, shares, strict=True):
        chosen[order[start : start + share]] = True
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def _classes(labels: object) -> Indices:
    given: NDArray[Any] = plain(to_array(labels, name="labels"), "labels")
    if given.ndim != 1 or given.dtype.kind not in "iuUS" or not given.size:
        raise InputError(
            "labels must be class indices or names, one an image, shape (n,); got shape "
            f"{given.shape} of dtype {given.dtype}."
        )
    return np.unique(given, return_inverse=True)[1].astype(np.intp)
