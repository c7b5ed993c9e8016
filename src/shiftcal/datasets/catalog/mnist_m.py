"""MNIST-M: MNIST digits blended over patches of photos (Ganin et al., 2016)."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from shiftcal._checks import check_choice
from shiftcal.datasets.about import About, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._list_files import keep_existing, read_list
from shiftcal.datasets.catalog._npy import map_images, read_labels
from shiftcal.datasets.catalog._pixel_files import DIGITS, PixelImages, check_same_number
from shiftcal.datasets.containers.files import FileImages
from shiftcal.errors import FileError, MissingData

_SPLITS = ("train", "test")
_STARTS = ("mnist_m", "mnistm")

ABOUT = About(
    title="MNIST-M",
    n_classes=10,
    homepage="http://yaroslav.ganin.net/",
    licence="none stated; research use",
    parts=(Part("train", {"split": "train"}, 59001), Part("test", {"split": "test"}, 9001)),
    by_hand=(
        "Download mnist_m.tar.gz (md5 859df31c91afe82e80e5012ba928f279) from the Google Drive "
        "folder https://drive.google.com/drive/folders/0B_tExHiYS-0vR2dNZEU4NGlSSW8, unpack it, "
        "and name the folder mnist_m."
    ),
)


def mnist_m(root: str | os.PathLike[str], *, split: str = "test") -> ImageSet:
    """MNIST-M, image files with a list of labels, or ``.npy`` arrays.

    Classes are the digits 0 to 9; images are in the order of the list or the array. Files are
    opened as needed, arrays are mapped.

    Args:
        root: The folder of ``mnist_m_test/`` and ``mnist_m_test_labels.txt`` (lines such as
            ``00000000.png 7``), or of ``mnist_m_test.npy``, uint8 ``(n, height, width, 3)``, and
            ``mnist_m_test_labels.npy``; or the one that ``mnist_m`` is in.
        split: ``"train"``, 59,001 images, or ``"test"``, 9,001.

    Raises:
        MissingData: If neither form is there.
        FileError: If one is damaged or something else, or its labels are missing.

    Warns:
        InputWarning: If listed images are not there; they are left out.
    """
    check_choice(split, _SPLITS, name="split")
    base = Path(root)
    for place in (base, base / "mnist_m", base / "MNIST_M"):
        for start in _STARTS:
            stem = place / f"{start}_{split}"
            if stem.is_dir():
                return _from_files(stem, split)
            if (array := stem.with_name(f"{stem.name}.npy")).is_file():
                return _from_array(array, split)
    raise MissingData(
        f"{base} holds no folder mnist_m_{split} and no file mnist_m_{split}.npy, one of which "
        f"MNIST-M {split} needs. Name the folder that it is in."
    )


def _from_files(folder: Path, split: str) -> ImageSet:
    file = folder.with_name(f"{folder.name}_labels.txt")
    if not file.is_file():
        raise FileError(f"{file} is missing; it has the labels of the images in {folder.name}.")
    paths, labels = read_list(file)
    if max(labels) > 9:
        raise FileError(f"{file} must have labels from 0 to 9; got {max(labels)}.")
    paths, labels = keep_existing(file, folder, paths, labels)
    return FileImages(folder, paths, name=f"MNIST-M {split}", labels=labels, classes=DIGITS)


def _from_array(file: Path, split: str) -> ImageSet:
    beside = file.with_name(f"{file.stem}_labels.npy")
    again = partial(map_images, file)
    pixels, digits = again(), read_labels(beside, k=10)
    name = f"MNIST-M {split}"
    check_same_number(len(pixels), len(digits), name=name)
    return PixelImages(pixels, again=again, name=name, labels=digits)
