"""A folder with a folder for every class."""

from __future__ import annotations

import os
from pathlib import Path

from shiftcal.datasets.containers.files import FileImages
from shiftcal.datasets.image_files import find_images
from shiftcal.datasets.ready_made import side_of_corrupted
from shiftcal.errors import FileError

_SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}


def class_folder(root: str | os.PathLike[str], *, name: str | None = None) -> FileImages:
    """Images as ``<class>/<file>``, the classes in the order of their folders' names.

    That is the order of Python's ``sorted``: capitals first, ``10`` before ``2``. Images may lie
    deeper, as ``<class>/<more>/<file>``. Images that lie directly in the folder, without folders
    beside them, make a set without labels. Hidden files and folders are left out.

    Args:
        root: The folder.
        name: As for every set; by default the folder.

    Raises:
        MissingData: If there is no image.
        FileError: If some lie in folders and some do not, if a class has
            none, or if the folders are parts such as ``train`` and ``test``.
    """
    folder = Path(root)
    files = find_images(folder)
    loose = [file for file in files if len(file.parts) == 1]
    if len(loose) == len(files):
        return _as_written(FileImages(folder, files, name=name or str(root)))
    if loose:
        raise FileError(
            f"{folder} must hold either images or one folder a class; it holds {loose[0]} beside "
            f"the folder {next(f for f in files if len(f.parts) > 1).parts[0]!r}. Move the one or "
            "the other away."
        )
    classes = sorted({file.parts[0] for file in files})
    if len(classes) > 1 and _SPLITS.issuperset(one.lower() for one in classes):
        raise FileError(
            f"{folder} holds the parts {', '.join(classes)} of a data set, not classes. Name one "
            f"of them: {folder / classes[0]}."
        )
    _refuse_empty(folder, classes)
    place = {one: index for index, one in enumerate(classes)}
    labels = [place[file.parts[0]] for file in files]
    return _as_written(
        FileImages(folder, files, name=name or str(root), labels=labels, classes=classes)
    )


def _as_written(images: FileImages) -> FileImages:
    # <corruption>/<severity> is two below what `shiftcal corrupt` wrote.
    images.ready_made = side_of_corrupted(images.root, above=2)
    return images


def _refuse_empty(folder: Path, classes: list[str]) -> None:
    """A class without images would or would not count, which changes the indices of all others."""
    there = {one.name for one in folder.iterdir() if one.is_dir() and not one.name.startswith(".")}
    if empty := sorted(there.difference(classes)):
        raise FileError(
            f"{folder} has a folder without images, {empty[0]!r}, so that it is unclear which "
            "number the classes after it have. Remove it, or put its images there."
        )
