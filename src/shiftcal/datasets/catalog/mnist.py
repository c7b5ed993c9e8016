"""MNIST: handwritten digits, 28 x 28, grey (LeCun et al., 1998)."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

from shiftcal._checks import check_choice
from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._idx_files import read_idx
from shiftcal.datasets.catalog._pixel_files import PixelImages, check_same_number
from shiftcal.errors import FileError

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

ABOUT = About(
    title="MNIST",
    n_classes=10,
    homepage="http://yann.lecun.com/exdb/mnist/",
    licence="CC BY-SA 3.0",
    parts=(Part("train", {"split": "train"}, 60000), Part("test", {"split": "test"}, 10000)),
    downloads=tuple(
        Download(f"{_MIRROR}/{name}", name, digest, unpack=False, size=size)
        for name, digest, size in _FILES
    ),
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
        FileError: If a file is missing, is no idx file, or does not hold what its header says.
    """
    start = _STARTS[check_choice(split, tuple(_STARTS), name="split")]
    images = _find(Path(root), f"{start}-images", "idx3-ubyte")
    labels = _find(Path(root), f"{start}-labels", "idx1-ubyte")
    again = partial(read_idx, images, item=(28, 28))
    pixels, digits = again(), np.array(read_idx(labels, item=()))
    name = f"MNIST {split}"
    check_same_number(len(pixels), len(digits), name=name)
    return PixelImages(pixels, again=again, name=name, labels=digits)


def _find(root: Path, what: str, kind: str) -> Path:
    spelled = [f"{before}{what}{dot}{kind}" for before in ("", "mnist_") for dot in "-."]
    for place in _PLACES:
        for name in (*spelled, *(f"{name}.gz" for name in spelled)):
            if (file := root / place / name).is_file():
                return file
    raise FileError(
        f"{root} holds no {spelled[0]}, with or without .gz, which MNIST needs. Name the folder "
        "that it is in, or fetch it."
    )
