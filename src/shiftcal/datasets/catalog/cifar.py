"""CIFAR-10, CIFAR-10.1 and CIFAR-10-C."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.catalog import About, Download, Part
from shiftcal.datasets.catalog.formats import (
    CORRUPTIONS,
    SEVERITIES,
    array_images,
    describe,
    wanted_corruptions,
    wanted_severities,
)
from shiftcal.datasets.image_set import ChainImages, ImageSet
from shiftcal.errors import FileError, MissingData
from shiftcal.files import naming, read_npy

CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_BATCHES = {
    "test": ("test_batch",),
    "train": tuple(f"data_batch_{i}" for i in range(1, 6)),
}
# MD5 of the python batches. They are pickles, so no other file is opened as one.
PUBLISHED = {
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


def cifar10(root: str | os.PathLike[str], *, split: str = "test") -> ImageSet:
    """CIFAR-10 from its python batches, mapped.

    The classes are in the order of its label file: airplane, automobile, bird, cat, deer, dog,
    frog, horse, ship, truck. The batches are pickles: only files with the published checksum are
    opened, and only the names that numpy's arrays need are looked up.

    Args:
        root: The folder ``cifar-10-batches-py``, or the one above it.
        split: ``"test"`` (10,000 images) or ``"train"`` (50,000, batch 1 to batch 5).

    Raises:
        MissingData: If no batch is there.
        FileError: If a batch is missing, damaged, or not the published one.
    """
    check_choice(split, tuple(_BATCHES), name="split")
    folder = Path(root)
    if (folder / "cifar-10-batches-py").is_dir():
        folder /= "cifar-10-batches-py"
    missing = [name for name in _BATCHES[split] if not (folder / name).is_file()]
    if missing:
        kind = MissingData if len(missing) == len(_BATCHES[split]) else FileError
        raise kind(f"{folder} has no {', '.join(missing)} of CIFAR-10. Unpack its archive there.")
    parts = [_batch(folder / name, f"CIFAR-10 {split}") for name in _BATCHES[split]]
    return parts[0] if len(parts) == 1 else ChainImages(parts, name=f"CIFAR-10 {split}")


def _batch(file: Path, name: str) -> ImageSet:
    """The images of a batch, mapped: red, then green, then blue values of each."""
    with file.open("rb") as stream:
        content = stream.read(1 << 26)  # a batch has 31 MB
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if digest != PUBLISHED[file.name]:
        raise FileError(
            f"{file} must be the published file, with MD5 {PUBLISHED[file.name]}; this one has "
            f"{digest}. It is a pickle, which could run code, and was not opened. Unpack the "
            "archive again."
        )
    try:
        batch = _Unpickler(io.BytesIO(content), encoding="latin1").load()
    except pickle.UnpicklingError as error:
        raise FileError(f"{file} could not be read: {error}.") from error
    shape = batch["data"].shape
    rows = np.memmap(file, np.uint8, "r", content.index(batch["data"].tobytes()), shape)
    images = rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return ArrayImages(images, name=name, labels=np.array(batch["labels"]), classes=CLASSES)


def _batch_files(split: str) -> tuple[str, ...]:
    return tuple(f"cifar-10-batches-py/{name}" for name in _BATCHES[split])


CIFAR10 = About(
    load=cifar10,
    title="CIFAR-10",
    n_classes=10,
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
    licence="none stated; research use",
    parts=(
        Part("test", {"split": "test"}, n=10_000, per_class=1_000, files=_batch_files("test")),
        Part("train", {"split": "train"}, n=50_000, per_class=5_000, files=_batch_files("train")),
    ),
    downloads=(
        Download(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
            "cifar-10-python.tar.gz",
            digest="md5:c58f30108f718f92721af3b95e74349a",
            size=170_498_071,
        ),
    ),
    digests={f"cifar-10-batches-py/{file}": f"md5:{text}" for file, text in PUBLISHED.items()},
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
    if not (folder / f"cifar10.1_{version}_data.npy").exists() and (folder / "datasets").is_dir():
        folder /= "datasets"
    return array_images(
        *(folder / file for file in _cifar10_1_names(version)),
        name=f"CIFAR-10.1 {version}",
        classes=CLASSES,
    )


def _cifar10_1_names(version: str) -> tuple[str, str]:
    return f"cifar10.1_{version}_data.npy", f"cifar10.1_{version}_labels.npy"


_CIFAR10_1_FILES = {
    "cifar10.1_v6_data.npy": (
        6_144_128,
        "2997188e5816f5bd545dc77771b6227828c28146049fcecf3fa10775474cacc6",
    ),
    "cifar10.1_v6_labels.npy": (
        8_128,
        "ae40beda001693674edc94d925ee8268cfe68905f8f9aff800c8dcdfcd6c9448",
    ),
    "cifar10.1_v4_data.npy": (
        6_208_640,
        "5aaedc268df8f4cffca2ac0cf9e608ae1897a8cddb630c7a850a2ea8f6558e75",
    ),
    "cifar10.1_v4_labels.npy": (
        8_212,
        "1f9544300ded199539b6662364ce7fe6c2e1ea9f87408f06db4b1a6184cffb18",
    ),
}
_CIFAR10_1 = "https://github.com/modestyachts/CIFAR-10.1/raw/master/datasets"
CIFAR10_1 = About(
    load=cifar10_1,
    title="CIFAR-10.1",
    n_classes=10,
    homepage="https://github.com/modestyachts/CIFAR-10.1",
    licence="none stated for the images, which come from Tiny Images; research use",
    parts=(
        Part("v6", {"version": "v6"}, n=2_000, per_class=200, files=_cifar10_1_names("v6")),
        Part("v4", {"version": "v4"}, n=2_021, files=_cifar10_1_names("v4")),
    ),
    downloads=tuple(
        Download(f"{_CIFAR10_1}/{name}", name, f"sha256:{digest}", unpack=False, size=size)
        for name, (size, digest) in _CIFAR10_1_FILES.items()
    ),
    paths=lambda name: (name, f"datasets/{name}"),
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
    base = Path(root)
    if not base.is_dir():
        raise MissingData(f"{base} is not a folder. Name the one that holds CIFAR-10-C's arrays.")
    folder = base / "CIFAR-10-C" if (base / "CIFAR-10-C").is_dir() else base
    present = {file.stem for file in folder.glob("*.npy") if file.name != "labels.npy"}
    present |= {entry.name for entry in folder.iterdir() if any(entry.glob("[1-5].npy"))}
    names = wanted_corruptions(corruption, sorted(present), root=folder)
    levels = wanted_severities(severity)
    parts = [part for name in names for part in _severities(folder, name, levels)]
    if len(parts) == 1:
        return parts[0]
    with naming(folder):  # they may differ in whether they have labels
        return ChainImages(parts, name=f"CIFAR-10-C {describe(names, levels)}")


def _severities(folder: Path, name: str, levels: Sequence[int]) -> Iterator[ImageSet]:
    """One set for every severity, from one array of all or from one array each."""
    stacked = folder / f"{name}.npy"
    images = read_npy(stacked, mapped=True) if stacked.exists() else None
    if images is not None and (not images.ndim or len(images) % len(SEVERITIES)):
        raise FileError(
            f"{stacked} must hold the same images at 5 severities, one after the other; it has "
            f"shape {images.shape}. Download it again."
        )
    for level in levels:
        file = folder / name / f"{level}.npy"
        if images is not None:
            file, n = stacked, len(images) // len(SEVERITIES)
            some = images[(level - 1) * n : level * n]
        elif not file.exists():
            raise FileError(f"{file} is missing: {file.parent} has only some severities.")
        else:
            some = read_npy(file, mapped=True)
        n = len(np.atleast_1d(some))
        labels = _labels(file.with_name("labels.npy"), n)
        with naming(file):
            yield ArrayImages(
                some,
                name=f"CIFAR-10-C {describe([name], [level])}",
                labels=labels,
                classes=None if labels is None else CLASSES,
                fields={"corruption": np.full(n, name), "severity": np.full(n, level)},
            )


def _labels(file: Path, n: int) -> NDArray[Any] | None:
    """Labels of the ``n`` images of a severity; ``None`` if ``shiftcal corrupt`` had none."""
    if not file.exists():
        if any((above / "corrupted.json").exists() for above in file.parents[:2]):
            return None
        raise FileError(f"{file} must be alongside the images, for their labels.")
    labels = np.atleast_1d(read_npy(file))
    if len(labels) not in (n, n * len(SEVERITIES)) or (labels.reshape(-1, n) != labels[:n]).any():
        raise FileError(
            f"{file} must have the labels of {n:,} images, once or for every severity. Download "
            "it again."
        )
    return labels[:n]


CIFAR10_C = About(
    load=cifar10_c,
    title="CIFAR-10-C",
    n_classes=10,
    homepage="https://zenodo.org/records/2535967",
    licence="CC BY 4.0",
    parts=tuple(
        Part(name, {"corruption": name}, n=50_000, per_class=5_000) for name in CORRUPTIONS
    ),
    downloads=(
        Download(
            "https://zenodo.org/records/2535967/files/CIFAR-10-C.tar",
            "CIFAR-10-C.tar",
            digest="md5:56bf5dcef84df0e2308c6dcbcbbd8499",
            size=2_918_471_680,
        ),
    ),
)
