"""PACS: seven classes as photos, paintings, cartoons and sketches (Li et al., 2017)."""

from __future__ import annotations

import os
from pathlib import Path

from shiftcal._checks import check_choice
from shiftcal.datasets.about import About, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._domain_folders import DomainFolders, Entries
from shiftcal.datasets.catalog._list_files import keep_existing, read_list
from shiftcal.errors import FileError

_COUNTS = {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929}
_SPLITS = ("train", "crossval", "test")
_LAYOUT = DomainFolders(
    "PACS",
    tuple(_COUNTS),
    ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person"),
    inside=("kfold", "PACS", "PACS/kfold", "images", "raw_images", "pacs_data"),
)
# Where copies keep the official lists; the last is the name of the makers' own folder.
_LISTS_IN = ("", "pacs_label", "splits", "Train val splits and h5py files pre-read")

ABOUT = About(
    title="PACS",
    n_classes=7,
    homepage="https://dali-dl.github.io/project_iccv2017.html",
    licence="none stated; research use",
    parts=tuple(Part(name, {"domain": name}, n) for name, n in _COUNTS.items()),
    by_hand=(
        "Download the images (and, for the official splits, the *_kfold.txt lists) from the "
        "Google Drive link at https://dali-dl.github.io/project_iccv2017.html, unpack them, and "
        "name the folder that holds art_painting, cartoon, photo and sketch."
    ),
)


def pacs(
    root: str | os.PathLike[str], *, domain: str | None = None, split: str | None = None
) -> ImageSet:
    """PACS, ``<domain>/<class>/<file>``.

    Classes are sorted: dog, elephant, giraffe, guitar, horse, house, person. Images are sorted by
    path, or in the order of the official list. ``fields["domain"]`` is the domain of each.

    Args:
        root: The folder of the domains, or the one that ``kfold`` is in.
        domain: ``"art_painting"``, ``"cartoon"``, ``"photo"`` or ``"sketch"``; all of them in this
            order by default.
        split: ``"train"``, ``"crossval"`` or ``"test"`` of the official lists, called
            ``<domain>_<split>_kfold.txt``, which are looked for in the root, ``pacs_label`` and
            ``splits``; ``"test"`` lists the whole domain. Everything by default, without a list.

    Raises:
        MissingData: If no domain that is asked for is there.
        FileError: If one of them or a list is missing, a folder is not that of a class, or a label
            (they count from 1) is not the one of its folder.

    Warns:
        InputWarning: If listed images are not there; they are left out.
    """
    if split is None:
        return _LAYOUT.load(root, domain)
    check_choice(split, _SPLITS, name="split")
    folders = _LAYOUT.find(root, domain)
    parts = {name: (at, _listed(Path(root), name, split, at)) for name, at in folders.items()}
    return _LAYOUT.gathered(parts, split=split)


def _listed(root: Path, domain: str, split: str, folder: Path) -> Entries:
    file = _find_list(root, f"{domain}_{split}_kfold.txt", folder)
    paths, labels = read_list(file, first=1)
    for path, label in zip(paths, labels, strict=True):
        if len(path.parts) != 3 or path.parts[0] != domain:
            raise FileError(
                f"{file} must list paths such as {domain}/dog/name.jpg; got {str(path)!r}. "
                "Fetch the list again."
            )
        index = _LAYOUT.index_of(folder, Path(*path.parts[1:]))
        if index != label:
            raise FileError(
                f"{file} gives {path} the label {label + 1}, and its folder is class {index + 1}. "
                "Official lists count from 1: fetch them again."
            )
    within = [path.relative_to(domain) for path in paths]
    return keep_existing(file, folder, within, labels)


def _find_list(root: Path, name: str, folder: Path) -> Path:
    above = (root, folder.parent, folder.parent.parent)
    for place in above:
        for inside in _LISTS_IN:
            if (file := place / inside / name).is_file():
                return file
    raise FileError(
        f"{name} is not in {root}, nor in its folders {', '.join(map(repr, _LISTS_IN[1:]))}. "
        "Fetch the official lists, or leave split out to take every image."
    )
