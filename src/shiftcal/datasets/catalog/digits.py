"""MNIST, MNIST-M and USPS."""

from __future__ import annotations

import bz2
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from shiftcal.checks import check_choice
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.catalog import About, Download, Root, inside
from shiftcal.datasets.image_files import FileImages
from shiftcal.datasets.image_set import ImageSet
from shiftcal.errors import FileError, MissingData
from shiftcal.files import naming, parsing, read_npz

DIGITS = tuple("0123456789")
_SPLITS = ("train", "test")
# What a file may unpack to. MNIST has 47 MB, USPS 25 MB.
_MOST_BYTES = 1 << 28


def _first(folder: Path, *names: str) -> Path:
    """The first of these files that is in the folder.

    Raises:
        MissingData: If none is.
    """
    file = next(filter(Path.is_file, map(folder.joinpath, names)), None)
    if file is None:
        raise MissingData(f"{folder} must hold {' or '.join(names)}; it has none of them.")
    return file


def _unpacked(file: Path) -> bytes:
    """The content of a file, decompressed if it ends in ``.gz`` or ``.bz2``."""
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(file.suffix, open)
    with opener(file, "rb") as stream:
        content: bytes = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise FileError(f"{file} unpacks to too many bytes. Download it again.")
    return content


def mnist(root: Root, *, split: str = "test") -> ImageSet:
    """MNIST from its idx files, held in memory. Classes are the digits 0 to 9.

    Args:
        root: The folder of the files, or the one that ``MNIST/raw`` is in. They are called
            ``train-images-idx3-ubyte``, with or without ``.gz`` and a leading ``mnist_``.
        split: ``"train"``, 60,000 images, or ``"test"``, 10,000.

    Raises:
        MissingData: If images or labels are not there.
        FileError: If a file is no idx file, or does not hold what its header says.
    """
    check_choice(split, _SPLITS, name="split")
    folder, start = inside(root, "MNIST/raw"), {"train": "train", "test": "t10k"}[split]
    images, labels = (
        _read_idx(folder, f"{start}-{name}-ubyte") for name in ("images-idx3", "labels-idx1")
    )
    with naming(folder):
        return ArrayImages(images, name=f"MNIST {split}", labels=labels, classes=DIGITS)


def _read_idx(folder: Path, name: str) -> NDArray[np.uint8]:
    """The array of an idx file: a magic number, sizes in 32 bits, big end first, then the bytes."""
    file = _first(folder, *(f"{a}{name}{z}" for a in ("", "mnist_") for z in ("", ".gz")))
    with parsing(file, "an idx file of bytes", fix="Download it again."):
        content = _unpacked(file)
        if not content.startswith(b"\0\0\x08"):
            raise FileError(f"{file} must be an idx file of bytes. Download it again.")
        sizes = np.frombuffer(content, ">u4", content[3], offset=4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * len(sizes)).reshape(sizes)


# The authors' server no longer gives the files; this is the mirror that torchvision uses.
_MNIST_ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST = About(
    load=mnist,
    title="MNIST",
    n_classes=10,
    homepage="http://yann.lecun.com/exdb/mnist/",
    licence="CC BY-SA 3.0",
    counts={"train": 60_000, "test": 10_000},
    downloads=tuple(
        Download(f"{_MNIST_ADDRESS}/{name}-ubyte.gz", f"md5:{digest}", size)
        for name, digest, size in (
            ("train-images-idx3", "f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
            ("train-labels-idx1", "d53e105ee54ea40749a09fcbcd1e9432", 28_881),
            ("t10k-images-idx3", "9fb629c4189551a2d022fa330f9573f3", 1_648_877),
            ("t10k-labels-idx1", "ec29112dd5afa0611ce80d1b7f02629c", 4_542),
        )
    ),
)


def mnist_m(root: Root, *, split: str = "test") -> ImageSet:
    """MNIST-M, image files with a list of labels, whose order counts. Classes are the digits.

    Args:
        root: The folder of ``mnist_m_test/`` and ``mnist_m_test_labels.txt`` (lines such as
            ``00000000.png 7``), or the one that ``mnist_m`` is in.
        split: ``"train"``, 59,001 images, or ``"test"``, 9,001.

    Raises:
        MissingData: If the list is not there.
        FileError: If it is damaged or something else.
    """
    check_choice(split, _SPLITS, name="split")
    folder = inside(root, "mnist_m") / f"mnist_m_{split}"
    file = folder.with_name(f"{folder.name}_labels.txt")
    with parsing(file, "a list of images, lines such as 00000000.png 7"):
        rows = [line.rsplit(maxsplit=1) for line in file.read_text("utf-8").splitlines() if line]
        files, labels = [name for name, _ in rows], [int(label) for _, label in rows]
        return FileImages(folder, files, name=f"MNIST-M {split}", labels=labels, classes=DIGITS)


MNIST_M = About(
    load=mnist_m,
    title="MNIST-M",
    n_classes=10,
    homepage="http://yaroslav.ganin.net/",
    licence="none stated; research use",
    counts={"train": 59_001, "test": 9_001},
    by_hand=(
        "Download mnist_m.tar.gz (md5 859df31c91afe82e80e5012ba928f279) from the Google Drive "
        "folder https://drive.google.com/drive/folders/0B_tExHiYS-0vR2dNZEU4NGlSSW8, unpack it, "
        "and name the folder mnist_m."
    ),
)


def usps(root: Root, *, split: str = "test") -> ImageSet:
    """USPS from its libsvm text files or an ``.npz`` file.

    Classes are the digits 0 to 9; the text files call them 1 to 10. Ink is bright. Values from -1
    to 1 (text) or 0 to 1 (``.npz``) become 0 to 255, rounded to the nearest. All is held in
    memory: 2 MB for ``"train"``.

    Args:
        root: The folder of ``usps.bz2`` and ``usps.t.bz2``, or of ``usps.npz`` with the arrays
            ``train_data``, ``train_target``, ``test_data`` and ``test_target``.
        split: ``"train"``, 7,291 images, or ``"test"``, 2,007.

    Raises:
        MissingData: If no such file is there.
        FileError: If it is damaged or something else.
    """
    check_choice(split, _SPLITS, name="split")
    file = _first(Path(root), {"train": "usps.bz2", "test": "usps.t.bz2"}[split], "usps.npz")
    with parsing(file, "a file of USPS", fix="Download it again."):
        if file.suffix == ".npz":
            low, parts = 0.0, read_npz(file, (f"{split}_data", f"{split}_target"))
            values, digits = parts[f"{split}_data"], parts[f"{split}_target"]
        else:
            content = io.BytesIO(_unpacked(file))
            rows, digits = load_svmlight_file(content, n_features=256, dtype=np.float32)
            low, values, digits = -1.0, rows.toarray(), digits - 1
        pixels = np.rint((values - low) * (255 / (1 - low)))
        if not ((pixels >= 0) & (pixels <= 255)).all():
            raise FileError(f"{file} must hold values from {low:g} to 1. Download it again.")
        images = pixels.astype(np.uint8).reshape(-1, 16, 16)
        return ArrayImages(images, name=f"USPS {split}", labels=digits, classes=DIGITS)


_USPS_ADDRESS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
USPS = About(
    load=usps,
    title="USPS",
    n_classes=10,
    homepage=f"{_USPS_ADDRESS}.html#usps",
    licence="none stated; research use",
    counts={"train": 7_291, "test": 2_007},
    downloads=(
        Download(f"{_USPS_ADDRESS}/usps.bz2", "md5:ec16c51db3855ca6c91edd34d0e9b197"),
        Download(f"{_USPS_ADDRESS}/usps.t.bz2", "md5:8ea070ee2aca1ac39742fdd1ef5ed118"),
    ),
)
