"""Images by groups of their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shiftcal._checks import check_groups
from shiftcal._registry import suggest
from shiftcal.datasets._imagenet16 import GROUPS as _IMAGENET16
from shiftcal.datasets.base import ImageSet
from shiftcal.errors import InputError, UnknownName

_KNOWN = {"imagenet16": _IMAGENET16}


def class_groups(name: str) -> dict[str, tuple[int, ...]]:
    """Published groups of classes: name -> indices of its members.

    Args:
        name: ``"imagenet16"``, the sixteen groups of 16-class-ImageNet among the 1,000 classes of
            ImageNet in the order of their wnids.

    Raises:
        UnknownName: If none are called so.
    """
    if name not in _KNOWN:
        raise UnknownName(f"no groups of classes are called {name!r}. {suggest(name, [*_KNOWN])}")
    return dict(_KNOWN[name])


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
