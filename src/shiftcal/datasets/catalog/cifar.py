"""CIFAR-10, CIFAR-10.1 and CIFAR-10-C."""

from __future__ import annotations

import hashlib
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.checks import check_choice
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.catalog import (
    PUBLISHED,
    SEVERITIES,
    About,
    Download,
    Root,
    Several,
    chosen,
    inside,
)
from shiftcal.datasets.image_set import ChainImages, ImageSet
from shiftcal.errors import FileError, MissingData
from shiftcal.files import naming, read_npy

CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
# MD5 of the python batches. They are pickles, so no other file is opened as one.
BATCHES = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}
# The names in such a pickle: those of numpy's arrays.
_NEEDED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """One of the names that a batch needs."""
        if (module, name) not in _NEEDED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch needs")
        return _NEEDED[module, name]


def cifar10(root: Root, *, split: str = "test") -> ImageSet:
    """CIFAR-10 from its python batches, mapped.

    The classes are in the order of its label file: airplane, automobile, bird, cat, deer, dog,
    frog, horse, ship, truck. The batches are pickles: only files with the published checksum are
    opened, and only the names that numpy's arrays need are looked up.

    Args:
        root: The folder ``cifar-10-batches-py``, or the one above it.
        split: ``"test"`` (10,000 images) or ``"train"`` (50,000, batch 1 to batch 5).

    Raises:
        MissingData: If a batch is not there.
        FileError: If a batch is damaged, or not the published one.
    """
    check_choice(split, ("test", "train"), name="split")
    folder, name = inside(root, "cifar-10-batches-py"), f"CIFAR-10 {split}"
    files = [folder / batch for batch in BATCHES if (batch == "test_batch") == (split == "test")]
    if missing := [file.name for file in files if not file.is_file()]:
        raise MissingData(f"{folder} has no {', '.join(missing)} of CIFAR-10. Unpack it there.")
    parts = [_batch(file, name) for file in files]
    return parts[0] if len(parts) == 1 else ChainImages(parts, name=name)


def _batch(file: Path, name: str) -> ImageSet:
    """The images of a batch, mapped: red, then green, then blue values of each."""
    with file.open("rb") as stream:
        content = stream.read(1 << 26)  # a batch has 31 MB
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if digest != BATCHES[file.name]:
        raise FileError(
            f"{file} must be the published file, with MD5 {BATCHES[file.name]}, and has {digest}. "
            "It is a pickle, which could run code, and was not opened. Unpack the archive again."
        )
    try:
        batch = _Unpickler(io.BytesIO(content), encoding="latin1").load()
    except pickle.UnpicklingError as error:
        raise FileError(f"{file} could not be read: {error}.") from error
    shape = batch["data"].shape
    rows = np.memmap(file, np.uint8, "r", content.index(batch["data"].tobytes()), shape)
    images = rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return ArrayImages(images, name=name, labels=np.array(batch["labels"]), classes=CLASSES)


CIFAR10 = About(
    load=cifar10,
    title="CIFAR-10",
    n_classes=10,
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
    licence="none stated; research use",
    counts={"test": 10_000, "train": 50_000},
    balanced=True,
    downloads=(
        Download(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
            "md5:c58f30108f718f92721af3b95e74349a",
            170_498_071,
        ),
    ),
)


def cifar10_1(root: Root, *, version: str = "v6") -> ImageSet:
    """CIFAR-10.1 from its ``.npy`` files, mapped; the classes are CIFAR-10's in its order.

    Args:
        root: The folder of ``cifar10.1_v6_data.npy`` and ``cifar10.1_v6_labels.npy``, or the one
            above its ``datasets`` folder.
        version: ``"v6"``, 2,000 images, 200 a class; the one its makers recommend.

    Raises:
        MissingData: If a file is not there.
        FileError: If one is damaged, or the two do not belong together.
    """
    check_choice(version, ("v6",), name="version")
    file = inside(root, "datasets") / f"cifar10.1_{version}_data.npy"
    images = read_npy(file, mapped=True)
    labels = read_npy(file.with_name(f"cifar10.1_{version}_labels.npy"))
    with naming(file):
        return ArrayImages(images, name=f"CIFAR-10.1 {version}", labels=labels, classes=CLASSES)


_CIFAR10_1 = "https://github.com/modestyachts/CIFAR-10.1/raw/master/datasets/cifar10.1_v6"
CIFAR10_1 = About(
    load=cifar10_1,
    title="CIFAR-10.1",
    n_classes=10,
    homepage="https://github.com/modestyachts/CIFAR-10.1",
    licence="none stated for the images, which come from Tiny Images; research use",
    counts={"v6": 2_000},
    option="version",
    balanced=True,
    downloads=(
        Download(
            f"{_CIFAR10_1}_data.npy",
            "sha256:2997188e5816f5bd545dc77771b6227828c28146049fcecf3fa10775474cacc6",
            6_144_128,
        ),
        Download(
            f"{_CIFAR10_1}_labels.npy",
            "sha256:ae40beda001693674edc94d925ee8268cfe68905f8f9aff800c8dcdfcd6c9448",
            8_128,
        ),
    ),
)


def cifar10_c(root: Root, *, corruption: Several = None, severity: Several = None) -> ImageSet:
    """CIFAR-10-C from its arrays, mapped; the classes are CIFAR-10's in its order.

    ``<corruption>.npy`` holds all images at severity 1, then all at severity 2, up to 5, and
    ``labels.npy`` the labels of those rows. What ``shiftcal corrupt`` writes is read too: the same,
    or ``<corruption>/<severity>.npy``, without ``labels.npy`` where the labels were not known.
    The fields ``corruption`` and ``severity`` say of every image where it comes from.

    Args:
        root: The folder of the arrays, or the one above ``CIFAR-10-C``.
        corruption: A name, several one after the other (in a list, or with commas), or all that
            are there, by name (``None`` or ``"all"``).
        severity: From 1 to 5, or several in the same ways; all, in rising order, by default.

    Raises:
        MissingData: If a corruption or severity is not there.
        FileError: If a file is damaged, or its rows do not fit the labels.
    """
    folder = inside(root, "CIFAR-10-C")
    present = {file.stem for file in folder.glob("*.npy") if file.name != "labels.npy"}
    present |= {file.parent.name for file in folder.glob("*/[1-5].npy")}
    names, levels, title = chosen(corruption, severity, present, folder)
    parts = [_severity(folder, name, level) for name in names for level in levels]
    return parts[0] if len(parts) == 1 else ChainImages(parts, name=f"CIFAR-10-C {title}")


def _severity(folder: Path, name: str, level: int) -> ArrayImages:
    """The images of one severity, from one array of all or from an array of its own."""
    file, part = folder / f"{name}.npy", slice(None)
    if not file.exists():
        file = folder / name / f"{level}.npy"
    images = np.atleast_1d(read_npy(file, mapped=True))
    total = len(images)
    if file.parent == folder:
        part = slice((level - 1) * total // len(SEVERITIES), level * total // len(SEVERITIES))
    labels_file, labels = file.with_name("labels.npy"), None
    if labels_file.exists():
        labels = np.atleast_1d(read_npy(labels_file))
        labels = labels[part] if len(labels) == total else labels
    with naming(file):
        return ArrayImages(
            images[part],
            name=f"CIFAR-10-C {name} {level}",
            labels=labels,
            classes=None if labels is None else CLASSES,
            fields={
                "corruption": np.full(len(images[part]), name),
                "severity": np.full(len(images[part]), level),
            },
        )


CIFAR10_C = About(
    load=cifar10_c,
    title="CIFAR-10-C",
    n_classes=10,
    homepage="https://zenodo.org/records/2535967",
    licence="CC BY 4.0",
    counts=dict.fromkeys(PUBLISHED, 50_000),
    option="corruption",
    balanced=True,
    downloads=(
        Download(
            "https://zenodo.org/records/2535967/files/CIFAR-10-C.tar",
            "md5:56bf5dcef84df0e2308c6dcbcbbd8499",
            2_918_471_680,
        ),
    ),
)
