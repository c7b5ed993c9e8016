"""CIFAR-10.1: a second test set for CIFAR-10, collected anew."""

from __future__ import annotations

import os
from pathlib import Path

from shiftcal._checks import check_choice
from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._cifar_names import CLASSES
from shiftcal.datasets.catalog._npy import map_images, read_labels
from shiftcal.datasets.containers.arrays import ArrayImages
from shiftcal.errors import FileError

_FROM = "https://github.com/modestyachts/CIFAR-10.1/raw/master/datasets"


def _file(name: str, size: int, digest: str) -> Download:
    url = f"{_FROM}/{name}"
    return Download(url, name, digest=digest, algorithm="sha256", unpack=False, size=size)


def _names(version: str) -> tuple[str, str]:
    return f"cifar10.1_{version}_data.npy", f"cifar10.1_{version}_labels.npy"


def _paths(name: str) -> tuple[str, str]:
    """Where copies have a file, in the order of preference."""
    return name, f"datasets/{name}"


ABOUT = About(
    title="CIFAR-10.1",
    n_classes=10,
    homepage="https://github.com/modestyachts/CIFAR-10.1",
    licence="none stated for the images, which come from Tiny Images; research use",
    parts=(
        Part("v6", {"version": "v6"}, n=2_000, per_class=200, files=_names("v6")),
        Part("v4", {"version": "v4"}, n=2_021, files=_names("v4")),
    ),
    downloads=(
        _file(
            "cifar10.1_v6_data.npy",
            6_144_128,
            "2997188e5816f5bd545dc77771b6227828c28146049fcecf3fa10775474cacc6",
        ),
        _file(
            "cifar10.1_v6_labels.npy",
            8_128,
            "ae40beda001693674edc94d925ee8268cfe68905f8f9aff800c8dcdfcd6c9448",
        ),
        _file(
            "cifar10.1_v4_data.npy",
            6_208_640,
            "5aaedc268df8f4cffca2ac0cf9e608ae1897a8cddb630c7a850a2ea8f6558e75",
        ),
        _file(
            "cifar10.1_v4_labels.npy",
            8_212,
            "1f9544300ded199539b6662364ce7fe6c2e1ea9f87408f06db4b1a6184cffb18",
        ),
    ),
    paths=_paths,
)


def cifar10_1(root: str | os.PathLike[str], *, version: str = "v6") -> ImageSet:
    """CIFAR-10.1 from its ``.npy`` files, mapped; the classes are CIFAR-10's in its order.

    Args:
        root: The folder of ``cifar10.1_v6_data.npy`` and ``cifar10.1_v6_labels.npy``, or the one
            above its ``datasets`` folder.
        version: ``"v6"`` (2,000 images, 200 a class; what its makers recommend) or ``"v4"``
            (2,021).

    Raises:
        MissingData: If the version is not there.
        FileError: If a file is damaged, the labels are missing, or the two do not belong together.
    """
    check_choice(version, ("v6", "v4"), name="version")
    folder = Path(root)
    name = f"cifar10.1_{version}"
    if not (folder / f"{name}_data.npy").exists() and (folder / "datasets").is_dir():
        folder /= "datasets"
    images = map_images(folder / f"{name}_data.npy")
    labels = read_labels(folder / f"{name}_labels.npy", k=len(CLASSES))
    if len(images) != len(labels):
        raise FileError(
            f"{folder / name}_data.npy and its labels must have the same number of rows; got "
            f"{len(images):,} images and {len(labels):,} labels. Fetch both again."
        )
    return ArrayImages(images, name=f"CIFAR-10.1 {version}", labels=labels, classes=CLASSES)
