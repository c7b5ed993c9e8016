"""CIFAR-10-C: the test images of CIFAR-10 under 19 corruptions of five severities."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._cifar10_c_digests import DIGESTS
from shiftcal.datasets.catalog._cifar_names import CLASSES
from shiftcal.datasets.catalog._npy import map_images, read_labels, some_rows
from shiftcal.datasets.catalog._shifts import (
    CORRUPTIONS,
    SEVERITIES,
    describe,
    wanted_corruptions,
    wanted_severities,
)
from shiftcal.datasets.containers.arrays import ArrayImages
from shiftcal.datasets.containers.chain import ChainImages
from shiftcal.errors import FileError, MissingData

ABOUT = About(
    title="CIFAR-10-C",
    n_classes=10,
    homepage="https://zenodo.org/records/2535967",
    licence="CC BY 4.0",
    parts=tuple(
        Part(
            name,
            {"corruption": name},
            n=50_000,
            per_class=5_000,
            files=(f"CIFAR-10-C/{name}.npy", "CIFAR-10-C/labels.npy"),
        )
        for name in CORRUPTIONS
    ),
    downloads=(
        Download(
            "https://zenodo.org/records/2535967/files/CIFAR-10-C.tar",
            "CIFAR-10-C.tar",
            digest="56bf5dcef84df0e2308c6dcbcbbd8499",
            size=2_918_471_680,
        ),
    ),
    digests=MappingProxyType(DIGESTS),
)


def cifar10_c(
    root: str | os.PathLike[str],
    *,
    corruption: str | Sequence[str] | None = None,
    severity: int | Sequence[int] | str | None = None,
) -> ImageSet:
    """CIFAR-10-C from its arrays, mapped; the classes are CIFAR-10's in its order.

    ``<corruption>.npy`` holds all images at severity 1, then all at severity 2, up to 5, and
    ``labels.npy`` the labels of those rows. What ``shiftcal corrupt`` writes is read too: the same
    without ``labels.npy`` where the labels were not known, and ``<corruption>/<severity>.npy``.
    The fields ``corruption`` and ``severity`` say of every image where it comes from.

    Args:
        root: The folder of the arrays, or the one above ``CIFAR-10-C``.
        corruption: A name, several one after the other (in a list, or with commas), or all that
            are there, by name (``None`` or ``"all"``).
        severity: From 1 to 5, or several in the same ways; all, in rising order, by default.

    Raises:
        MissingData: If none of the corruptions is there.
        FileError: If a file is missing or damaged, or its rows do not fit the labels.
    """
    folder = _folder(Path(root))
    names = wanted_corruptions(corruption, _present(folder), root=folder)
    levels = wanted_severities(severity)
    parts = [part for name in names for part in _parts(folder, name, levels)]
    if len({part.labels is None for part in parts}) > 1:
        raise FileError(
            f"{folder} has labels.npy for some corruptions and not for others. Copy it to where "
            "it is missing."
        )
    if len(parts) == 1:
        return parts[0]
    return ChainImages(parts, name=f"CIFAR-10-C {describe(names, levels)}")


def _folder(root: Path) -> Path:
    if not root.is_dir():
        raise MissingData(f"{root} is not a folder. Name the one that holds CIFAR-10-C's arrays.")
    inner = root / "CIFAR-10-C"
    return inner if inner.is_dir() else root


def _present(folder: Path) -> list[str]:
    stacked = [file.stem for file in folder.glob("*.npy") if file.name != "labels.npy"]
    apart = [entry.name for entry in folder.iterdir() if any(entry.glob("[1-5].npy"))]
    return sorted({name for name in (*stacked, *apart) if not name.startswith(".")})


def _parts(folder: Path, name: str, levels: Sequence[int]) -> Iterator[ImageSet]:
    """One set for every severity."""
    stacked = folder / f"{name}.npy"
    if not stacked.exists():
        for level in levels:
            images = map_images(_apart(folder / name, level))
            labels = _labels(folder / name / "labels.npy", len(images), times=1)
            yield _part(images, name, level, labels)
        return
    images = map_images(stacked)
    n, rest = divmod(len(images), len(SEVERITIES))
    if rest or not n:
        raise FileError(
            f"{stacked} must hold the same images at {len(SEVERITIES)} severities, one after the "
            f"other; its {len(images):,} rows are no multiple of that. Fetch or write it again."
        )
    labels = _labels(folder / "labels.npy", n, times=len(SEVERITIES))
    for level in levels:
        yield _part(some_rows(images, (level - 1) * n, level * n), name, level, labels)


def _apart(folder: Path, level: int) -> Path:
    """The array of one severity, of a corruption that has at least one."""
    file = folder / f"{level}.npy"
    if not file.exists():
        raise FileError(
            f"{file} is missing: {folder} has only some severities. Make the rest, or ask for one "
            "that is there."
        )
    return file


def _part(
    images: np.memmap[Any, Any], name: str, level: int, labels: NDArray[np.intp] | None
) -> ImageSet:
    return ArrayImages(
        images,
        name=f"CIFAR-10-C {describe([name], [level])}",
        labels=labels,
        classes=None if labels is None else CLASSES,
        fields={
            "corruption": np.full(len(images), name),
            "severity": np.full(len(images), level),
        },
    )


def _labels(file: Path, n: int, *, times: int) -> NDArray[np.intp] | None:
    """Labels of the ``n`` images of a severity; ``None`` if they were not known."""
    if not file.exists():
        if any((above / "corrupted.json").exists() for above in file.parents[:2]):
            return None
        raise FileError(f"{file} must be beside the images, for their labels. Fetch it again.")
    found = read_labels(file, k=len(CLASSES))
    if len(found) not in (n, n * times):
        raise FileError(
            f"{file} must have a label for each of the {n * times:,} rows of the images beside it; "
            f"it has {len(found):,}. Fetch or write them again."
        )
    if (found.reshape(-1, n) != found[:n]).any():
        raise FileError(
            f"{file} must repeat the labels of the {n:,} images for every severity; those of "
            "severity 1 and a later one differ. Fetch or write it again."
        )
    return found[:n]
