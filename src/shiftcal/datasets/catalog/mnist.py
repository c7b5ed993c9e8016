"""MNIST: handwritten digits, 28 x 28, grey (LeCun et al., 1998)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from shiftcal._checks import check_choice
from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._idx_files import read_idx
from shiftcal.datasets.catalog._pixel_files import PixelImages, check_same_number
from shiftcal.errors import FileError, MissingData

_STARTS = {"train": "train", "test": "t10k"}
_PLACES = ("", "MNIST/raw", "raw", "mnist", "MNIST")
# The makers' own server no longer gives the files; this is the mirror that torchvision uses.
_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist"
_FILES = (
    ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", 9912422),
    ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432", 28881),
    ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3", 1648877),
    ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c", 4542),
)
_UNPACKED = {
    "train-images-idx3-ubyte": "md5:6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "md5:a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "md5:2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "md5:27ae3e4e09519cfbb04c329615203637",
}


def _paths(name: str) -> Iterator[str]:
    """Where copies have a file, as it is called unpacked, in the order of preference."""
    what, _, kind = name.rpartition("-idx")
    spelled = [f"{before}{what}{dot}idx{kind}" for before in ("", "mnist_") for dot in "-."]
    for place in _PLACES:
        for found in (*spelled, *(f"{one}.gz" for one in spelled)):
            yield f"{place}/{found}" if place else found


def _files(split: str) -> tuple[str, str]:
    start = _STARTS[split]
    return f"{start}-images-idx3-ubyte", f"{start}-labels-idx1-ubyte"


ABOUT = About(
    title="MNIST",
    n_classes=10,
    homepage="http://yann.lecun.com/exdb/mnist/",
    licence="CC BY-SA 3.0",
    parts=(
        Part("train", {"split": "train"}, 60000, files=_files("train")),
        Part("test", {"split": "test"}, 10000, files=_files("test")),
    ),
    downloads=tuple(
        Download(f"{_MIRROR}/{name}", name, digest, unpack=False, size=size)
        for name, digest, size in _FILES
    ),
    digests=MappingProxyType(_UNPACKED),
    paths=_paths,
)


def mnist(root: str | os.PathLike[str], *, split: str = "test") -> ImageSet:
    """MNIST from its idx files.

    Classes are the digits 0 to 9. Files that are not compressed are mapped and read as needed;
    ``.gz`` files are unpacked to memory, which takes 47 MB for ``"train"`` and 8 MB for
    ``"test"``, in every process that reads them.

    Args:
        root: The folder of the files, or the one that ``MNIST/raw`` is in. They are called
            ``train-images-idx3-ubyte`` or ``train-images.idx3-ubyte``, with or without ``.gz``
            and a leading ``mnist_``.
        split: ``"train"``, 60,000 images, or ``"test"``, 10,000.

    Raises:
        MissingData: If neither images nor labels are there.
        FileError: If one of the two is missing, is no idx file, or does not hold what its header
            says.
    """
    check_choice(split, tuple(_STARTS), name="split")
    images, labels = _found(Path(root), *_files(split))
    again = partial(read_idx, images, item=(28, 28))
    pixels, digits = again(), np.array(read_idx(labels, item=()))
    name = f"MNIST {split}"
    check_same_number(len(pixels), len(digits), name=name)
    return PixelImages(pixels, again=again, name=name, labels=digits)


def _found(root: Path, images: str, labels: str) -> tuple[Path, Path]:
    at = {name: _first(root, name) for name in (images, labels)}
    file, beside = at[images], at[labels]
    if file is None or beside is None:
        absent = images if file is None else labels
        kind = MissingData if file is None and beside is None else FileError
        raise kind(
            f"{root} holds no {absent}, with or without .gz, which MNIST needs. Name the folder "
            "that it is in, or fetch it."
        )
    return file, beside


def _first(root: Path, name: str) -> Path | None:
    return next((root / path for path in _paths(name) if (root / path).is_file()), None)
