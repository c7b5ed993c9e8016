"""VisDA-2017, classification: synthetic images to train on, real ones to adapt to (Peng et al.)."""

from __future__ import annotations

import os
from pathlib import Path

from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._domain_folders import DomainFolders, Entries
from shiftcal.datasets.catalog._list_files import keep_existing, read_list
from shiftcal.errors import FileError

_COUNTS = {"train": 152397, "validation": 55388}
# fmt: off
_CLASSES = (
    "aeroplane", "bicycle", "bus", "car", "horse", "knife", "motorcycle", "person", "plant",
    "skateboard", "train", "truck",
)
# fmt: on
_LAYOUT = DomainFolders(
    "VisDA-2017", tuple(_COUNTS), _CLASSES, inside=("visda2017", "visda-2017", "VisDA-2017")
)
_LIST = "image_list.txt"
_ADDRESS = "https://csr.bu.edu/ftp/visda17/clf"

ABOUT = About(
    title="VisDA-2017",
    n_classes=12,
    homepage="http://ai.bu.edu/visda-2017/",
    licence="non-commercial research and education, no redistribution",
    parts=tuple(Part(name, {"domain": name}, n) for name, n in _COUNTS.items()),
    downloads=tuple(Download(f"{_ADDRESS}/{name}.tar", f"{name}.tar") for name in _COUNTS),
)


def visda2017(root: str | os.PathLike[str], *, domain: str | None = None) -> ImageSet:
    """VisDA-2017, ``<domain>/<class>/<file>``.

    Classes are sorted: aeroplane, bicycle, bus, car, horse, knife, motorcycle, person, plant,
    skateboard, train, truck. Where ``<domain>/image_list.txt`` is, images are in its order, and
    its labels must be those of the folders; otherwise they are sorted by path.
    ``fields["domain"]`` is the domain of each.

    Args:
        root: The folder that ``train.tar`` and ``validation.tar`` were unpacked in.
        domain: ``"train"``, 152,397 synthetic images, or ``"validation"``, 55,388 real ones; both
            in this order by default.

    Raises:
        MissingData: If no domain that is asked for is there.
        FileError: If one of them is missing, a folder is not that of a class, or the list says
            something else than the folders.

    Warns:
        InputWarning: If listed images are not there; they are left out.
    """
    folders = _LAYOUT.find(root, domain)
    return _LAYOUT.gathered({name: (at, _entries(at)) for name, at in folders.items()})


def _entries(folder: Path) -> Entries:
    file = folder / _LIST
    if not file.exists():
        return _LAYOUT.by_folder(folder)
    paths, labels = read_list(file)
    for path, label in zip(paths, labels, strict=True):
        index = _LAYOUT.index_of(folder, Path(path))
        if index != label:
            raise FileError(
                f"{file} gives {path} the label {label}, and its folder is class {index} "
                f"({_CLASSES[index]}). Fetch the list again, or remove it to go by the folders."
            )
    return keep_existing(file, folder, paths, labels)
