"""USPS: handwritten digits of postal codes, 16 x 16, grey (Hull, 1994)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_choice
from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._libsvm_text import read_libsvm
from shiftcal.datasets.catalog._npz_arrays import read_npz
from shiftcal.datasets.catalog._pixel_files import PixelImages, check_same_number
from shiftcal.errors import FileError, MissingData

_ADDRESS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
_TEXTS = {"train": "usps", "test": "usps.t"}
_PIXELS = 256
_PLACES = ("", "usps", "USPS")


def _paths(name: str) -> Iterator[str]:
    """Where copies have a file, in the order of preference."""
    return (f"{place}/{name}" if place else name for place in _PLACES)


ABOUT = About(
    title="USPS",
    n_classes=10,
    homepage="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html#usps",
    licence="none stated; research use",
    parts=(
        Part("train", {"split": "train"}, 7291, files=("usps.bz2",)),
        Part("test", {"split": "test"}, 2007, files=("usps.t.bz2",)),
    ),
    downloads=(
        Download(
            f"{_ADDRESS}/usps.bz2", "usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197", unpack=False
        ),
        Download(
            f"{_ADDRESS}/usps.t.bz2", "usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118", unpack=False
        ),
    ),
    paths=_paths,
)


def usps(root: str | os.PathLike[str], *, split: str = "test") -> ImageSet:
    """USPS from its libsvm text files or an ``.npz`` file.

    Classes are the digits 0 to 9; the text files call them 1 to 10. Ink is bright. Values from -1
    to 1 (text) or 0 to 1 (``.npz``) become 0 to 255, rounded to the nearest. All is held in
    memory: 2 MB for ``"train"``.

    Args:
        root: The folder of ``usps.bz2`` and ``usps.t.bz2`` (or both without ``.bz2``), or of
            ``usps.npz`` with the arrays ``train_data``, ``train_target``, ``test_data`` and
            ``test_target``.
        split: ``"train"``, 7,291 images, or ``"test"``, 2,007.

    Raises:
        MissingData: If no such file is there.
        FileError: If it is damaged or something else.
    """
    check_choice(split, tuple(_TEXTS), name="split")
    file = _find(Path(root), split)
    pixels, digits = _read(file, split)
    return PixelImages(
        pixels, again=partial(_pixels, file, split), name=f"USPS {split}", labels=digits
    )


def _find(root: Path, split: str) -> Path:
    names = (f"{_TEXTS[split]}.bz2", _TEXTS[split], "usps.npz")
    for place in _PLACES:
        for name in names:
            if (file := root / place / name).is_file():
                return file
    raise MissingData(
        f"{root} holds no {', '.join(names[:-1])} or {names[-1]}, one of which USPS {split} "
        "needs. Name the folder that it is in, or fetch it."
    )


def _read(file: Path, split: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    if file.suffix == ".npz":
        values = read_npz(file, f"{split}_data", item=(_PIXELS,), kinds="f")
        digits = read_npz(file, f"{split}_target", item=(), kinds="iu").astype(np.int64)
        check_same_number(len(values), len(digits), name=f"USPS {split}")
        low = 0.0
    else:
        values, labels = read_libsvm(file, n_values=_PIXELS)
        digits, low = labels - 1, -1.0
    if not ((values >= low) & (values <= 1)).all():  # not so for nan either
        raise FileError(f"{file} must hold values from {low:g} to 1, and some are not.")
    if not ((digits >= 0) & (digits <= 9)).all():
        raise FileError(f"{file} must hold labels of ten digits, and some are none of them.")
    bright = np.rint((values - low) * (255 / (1 - low))).astype(np.uint8)
    return bright.reshape(-1, 16, 16), digits


def _pixels(file: Path, split: str) -> NDArray[np.uint8]:
    return _read(file, split)[0]
