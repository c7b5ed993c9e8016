"""ImageNet-C: the validation images of ImageNet under 19 corruptions of five severities."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._imagenet_files import Labelled, labelled_files
from shiftcal.datasets.catalog._shifts import (
    CORRUPTIONS,
    GROUPS,
    SEVERITIES,
    describe,
    wanted_corruptions,
    wanted_severities,
)
from shiftcal.datasets.containers.files import FileImages
from shiftcal.datasets.ready_made import side_of_corrupted
from shiftcal.errors import FileError, MissingData

_FROM = "https://zenodo.org/records/2235448/files"
_SIDE = 224


def _archive(name: str, size: int, digest: str) -> Download:
    return Download(f"{_FROM}/{name}", name, digest=digest, size=size)


ABOUT = About(
    title="ImageNet-C",
    n_classes=1000,
    homepage="https://zenodo.org/records/2235448",
    licence="CC BY 4.0; the images beneath are ImageNet's",
    parts=tuple(Part(name, {"corruption": name}, n=250_000, per_class=250) for name in CORRUPTIONS),
    downloads=(
        _archive("noise.tar", 22_565_673_785, "e80562d7f6c3f8834afb1ecf27252745"),
        _archive("blur.tar", 7_112_704_951, "2d8e81fdd8e07fef67b9334fa635e45c"),
        _archive("weather.tar", 12_797_438_995, "33ffea4db4d93fe4a428c40a6ce0c25d"),
        _archive("digital.tar", 7_757_510_705, "89157860d7b10d5797849337ca2e5c03"),
        _archive("extra.tar", 15_789_490_144, "d492dfba5fc162d8ec2c3cd8ee672984"),
    ),
)


def imagenet_c(
    root: str | os.PathLike[str],
    *,
    corruption: str | Sequence[str] | None = None,
    severity: int | Sequence[int] | str | None = None,
    labels: str | os.PathLike[str] | None = None,
    class_index: str | os.PathLike[str] | None = None,
) -> ImageSet:
    """ImageNet-C from ``<corruption>/<severity>/<wnid>/*.JPEG``; the classes are the sorted wnids.

    The corruptions may also lie in folders of their groups, such as ``noise/gaussian_noise``, and
    what ``shiftcal corrupt`` writes for a folder is read the same. The fields ``corruption`` and
    ``severity`` say of every image where it comes from. All of it is 4,750,000 files, whose names
    take about a gigabyte of memory: ask for what you need.

    The images were resized to 256 and cut to 224 x 224 before they were corrupted, and are stored
    so. A network that brings that preprocessing with it would enlarge them again: take its
    resizing away, with ``?resize=none`` in the spec of the model. :attr:`ready_made` is 224, or
    what ``shiftcal corrupt --crop`` was told.

    Args:
        root: The folder of the corruptions.
        corruption: A name, several one after the other (in a list, or with commas), or all that
            are there, by name (``None`` or ``"all"``).
        severity: From 1 to 5, or several in the same ways; all, in rising order, by default.
        labels: A list of labels for images that are not in folders named by wnid; looked for in
            the root and beside it by default, as for ImageNet.
        class_index: A list of all classes, such as ``imagenet_class_index.json``, where only some
            are there; looked for there by default.

    Raises:
        MissingData: If none of the corruptions is there.
        FileError: If one of them or a severity is missing, or labels cannot be told.
    """
    base = Path(root)
    present = _present(base)
    names = wanted_corruptions(corruption, list(present), root=base)
    levels = wanted_severities(severity)
    wanted = [(name, level) for name in names for level in levels]
    places = (base, base.absolute().parent)
    found = [
        _labelled(
            _level(present[name], level), places=places, labels=labels, class_index=class_index
        )
        for name, level in wanted
    ]
    if len({part.classes for part in found}) > 1:
        raise FileError(
            f"{base} must have the same classes under every corruption and severity; they differ. "
            "Fetch or make it again."
        )
    counts = [len(part.files) for part in found]
    images = FileImages(
        base,
        [
            f"{present[name].relative_to(base).as_posix()}/{level}/{file}"
            for (name, level), part in zip(wanted, found, strict=True)
            for file in part.files
        ],
        name=f"ImageNet-C {describe(names, levels)}",
        labels=np.concatenate([part.labels for part in found]),
        classes=found[0].classes,
        fields={
            "corruption": np.repeat([name for name, _ in wanted], counts),
            "severity": np.repeat([level for _, level in wanted], counts),
        },
    )
    images.ready_made = side_of_corrupted(base, published=_SIDE)
    return images


def _present(base: Path) -> dict[str, Path]:
    """Folders of corruptions by name, those that have a severity in them."""
    if not base.is_dir():
        raise MissingData(f"{base} is not a folder. Name the one that holds ImageNet-C.")
    above = [base, *(base / group for group in GROUPS if (base / group).is_dir())]
    entries = [entry for folder in above for entry in sorted(folder.iterdir())]
    found: dict[str, Path] = {}
    for entry in entries:
        if any((entry / str(level)).is_dir() for level in SEVERITIES):
            found.setdefault(entry.name, entry)
    return found


def _labelled(folder: Path, **how: Any) -> Labelled:
    try:
        return labelled_files(folder, **how)
    except MissingData as error:  # the corruption is there, though this of it is not
        raise FileError(str(error)) from error


def _level(folder: Path, level: int) -> Path:
    if not (folder / str(level)).is_dir():
        there = [str(other) for other in SEVERITIES if (folder / str(other)).is_dir()]
        raise FileError(
            f"{folder} must have a folder for severity {level}; it has only {', '.join(there)}. "
            "Fetch or make the rest, or ask for a severity that is there."
        )
    return folder / str(level)
