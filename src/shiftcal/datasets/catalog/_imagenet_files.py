"""Image files of ImageNet's classes in a folder, with their labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.catalog._imagenet_list import labels_of
from shiftcal.datasets.catalog._wnids import all_classes, is_wnid
from shiftcal.datasets.image_files import find_images
from shiftcal.errors import FileError


@dataclass(frozen=True, eq=False)
class Labelled:
    """Files and what they show.

    Attributes:
        files: Their paths below the folder, with ``/`` between the parts, sorted.
        labels: Class indices ``(n,)``.
        classes: The wnids in order, if they are known.
    """

    files: list[str]
    labels: NDArray[np.intp]
    classes: tuple[str, ...] | None


def labelled_files(
    folder: Path,
    *,
    places: Sequence[Path],
    labels: str | os.PathLike[str] | None = None,
    class_index: str | os.PathLike[str] | None = None,
) -> Labelled:
    """The images of a folder: in folders named by wnid, or all together with a list of labels.

    Args:
        folder: Where the images are.
        places: Folders that may hold lists of labels or classes; the first is named in messages.
        labels: A list of labels, if the caller has named one.
        class_index: A list of classes, if the caller has named one.

    Raises:
        MissingData: If there are no images.
        FileError: If their labels cannot be told.
    """
    found = find_images(folder)
    files = [path.as_posix() for path in found]
    tops = [path.parts[0] if len(path.parts) > 1 else "" for path in found]
    strange = next((file for file, top in zip(files, tops, strict=True) if not is_wnid(top)), None)
    if strange is None and labels is None:
        there = {entry.name for entry in folder.iterdir() if is_wnid(entry.name)}
        classes = all_classes(there, where=folder, places=places, given=class_index)
        position = {wnid: i for i, wnid in enumerate(classes)}
        return Labelled(files, np.array([position[top] for top in tops], np.intp), classes)
    if labels is None and any(map(is_wnid, tops)):
        raise FileError(
            f"{folder} has folders named by wnid and other images beside them, such as "
            f"{strange!r}. Move those elsewhere."
        )
    given, known = labels_of(
        [path.stem for path in found],
        where=folder,
        places=places,
        labels=labels,
        class_index=class_index,
    )
    return Labelled(files, np.array(given, np.intp), known)


def beside(folder: Path, root: Path) -> tuple[Path, ...]:
    """Where lists may lie: in the root, with the images or above them, and beside the root."""
    return tuple(dict.fromkeys((root, folder, folder.parent, root.absolute().parent)))
