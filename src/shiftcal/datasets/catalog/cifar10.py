"""CIFAR-10: 60,000 images of 32 x 32 pixels in ten classes."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType

import numpy as np

from shiftcal._checks import check_choice
from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._cifar_batches import FILES, find_batches, read_batch, read_names
from shiftcal.datasets.catalog._cifar_rows import CifarRows


def _files(split: str) -> tuple[str, ...]:
    return tuple(f"cifar-10-batches-py/{name}" for name in (*FILES[split], "batches.meta"))


ABOUT = About(
    title="CIFAR-10",
    n_classes=10,
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
    licence="none stated; research use",
    parts=(
        Part("test", {"split": "test"}, n=10_000, per_class=1_000, files=_files("test")),
        Part("train", {"split": "train"}, n=50_000, per_class=5_000, files=_files("train")),
    ),
    downloads=(
        Download(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
            "cifar-10-python.tar.gz",
            digest="c58f30108f718f92721af3b95e74349a",
            size=170_498_071,
        ),
    ),
    digests=MappingProxyType(
        {
            f"cifar-10-batches-py/{file}": f"md5:{digest}"
            for file, digest in {
                "data_batch_1": "c99cafc152244af753f735de768cd75f",
                "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
                "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
                "data_batch_4": "634d18415352ddfa80567beed471001a",
                "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
                "test_batch": "40351d587109b95175f43aff81a1287e",
                "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
            }.items()
        }
    ),
)


def cifar10(root: str | os.PathLike[str], *, split: str = "test") -> ImageSet:
    """CIFAR-10 from its python or its binary batches, mapped.

    The classes are in the order of its label file: airplane, automobile, bird, cat, deer, dog,
    frog, horse, ship, truck. The python batches are pickles; they are read without running
    anything, and a file that asks for more than a batch needs is refused.

    Args:
        root: The folder ``cifar-10-batches-py`` or ``cifar-10-batches-bin``, or the one above it.
            If both are there, the python batches are read.
        split: ``"test"`` (10,000 images) or ``"train"`` (50,000, batch 1 to batch 5).

    Raises:
        MissingData: If no batch is there.
        FileError: If a batch is missing, damaged, or asks for what no batch needs.
    """
    check_choice(split, tuple(FILES), name="split")
    files = find_batches(Path(root), split)
    read = [read_batch(file) for file in files]
    return CifarRows(
        [rows for rows, _ in read],
        name=f"CIFAR-10 {split}",
        labels=np.concatenate([labels for _, labels in read]),
        classes=read_names(files[0].parent),
    )
