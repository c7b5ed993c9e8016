"""MNIST, MNIST-M and USPS."""

from __future__ import annotations

import bz2
import gzip
import io
import math
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from shiftcal.checks import check_choice
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.datasets.catalog import About, Download, Part
from shiftcal.datasets.catalog.formats import array_images
from shiftcal.datasets.image_files import FileImages
from shiftcal.datasets.image_set import ImageSet
from shiftcal.errors import FileError, InputWarning, MissingData
from shiftcal.files import naming, parsing, read_npz

DIGITS = tuple("0123456789")
_SPLITS = ("train", "test")
# What a file may unpack to. MNIST has 47 MB, USPS 25 MB.
_MOST_BYTES = 1 << 28


def _unpacked(file: Path) -> bytes:
    """The content of a file, decompressed if it ends in ``.gz`` or ``.bz2``."""
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(file.suffix, open)
    content = bytearray()
    with parsing(file, "a compressed file"), opener(file, "rb") as stream:
        while more := stream.read(1 << 20):
            content += more
            if len(content) > _MOST_BYTES:
                raise FileError(f"{file} unpacks to too many bytes. Download it again.")
    return bytes(content)


def mnist(root: str | os.PathLike[str], *, split: str = "test") -> ImageSet:
    """MNIST from its idx files.

    Classes are the digits 0 to 9. Plain files are mapped; ``.gz`` files are unpacked to memory.

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
    check_choice(split, _SPLITS, name="split")
    base, start = Path(root), {"train": "train", "test": "t10k"}[split]
    names = f"{start}-images-idx3-ubyte", f"{start}-labels-idx1-ubyte"
    images, labels = (
        next(
            filter(Path.is_file, map(base.joinpath, (*_mnist_paths(n), *_mnist_paths(f"{n}.gz")))),
            None,
        )
        for n in names
    )
    if images is None or labels is None:
        kind = MissingData if images is labels else FileError
        raise kind(
            f"{base} holds no {names[0 if images is None else 1]}, with or without .gz, which "
            "MNIST needs."
        )
    with naming(images):
        return ArrayImages(
            _read_idx(images, (28, 28)),
            name=f"MNIST {split}",
            labels=np.array(_read_idx(labels, ())),
            classes=DIGITS,
        )


def _read_idx(file: Path, item: tuple[int, ...]) -> NDArray[np.uint8]:
    """The items ``(n, *item)`` of an idx file, mapped unless it is compressed.

    The format is a magic number, sizes as big-endian 32-bit numbers, then the bytes.
    """
    header, mapped = 8 + 4 * len(item), file.suffix != ".gz"
    content: Any = np.memmap(file, np.uint8, "r") if mapped and file.stat().st_size else b""
    content = content if mapped else np.frombuffer(_unpacked(file), np.uint8)
    head = bytes(content[:header])
    sizes = tuple(np.frombuffer(head, ">u4")[1:].tolist()) if len(head) == header else (0,)
    n = sizes[0]
    good = head[:4] == bytes((0, 0, 8, 1 + len(item))) and sizes[1:] == item and n
    if not good or len(content) != header + n * math.prod(item):
        raise FileError(
            f"{file} must be an idx file of unsigned bytes of shape (n, *{item}); it begins with "
            f"{head.hex(' ') or 'nothing'} and holds {len(content):,} bytes. Download it again."
        )
    return content[header:].reshape(n, *item)


def _mnist_paths(name: str) -> Iterator[str]:
    """Where copies have a file, in the order of preference."""
    what, _, kind = name.rpartition("-idx")
    spelled = [f"{before}{what}{dot}idx{kind}" for before in ("", "mnist_") for dot in "-."]
    for place in ("", "MNIST/raw/", "raw/", "mnist/", "MNIST/"):
        for found in (*spelled, *(f"{one}.gz" for one in spelled)):
            yield f"{place}{found}"


# MD5 of the unpacked files, by which copies are checked.
_MNIST_DIGESTS = {
    "train-images-idx3-ubyte": "md5:6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "md5:a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "md5:2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "md5:27ae3e4e09519cfbb04c329615203637",
}
# MD5 and size of the downloads.
_MNIST_FILES = {
    "train-images-idx3-ubyte.gz": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", 9912422),
    "train-labels-idx1-ubyte.gz": ("d53e105ee54ea40749a09fcbcd1e9432", 28881),
    "t10k-images-idx3-ubyte.gz": ("9fb629c4189551a2d022fa330f9573f3", 1648877),
    "t10k-labels-idx1-ubyte.gz": ("ec29112dd5afa0611ce80d1b7f02629c", 4542),
}
# The authors' server no longer gives the files; this is the mirror that torchvision uses.
_MNIST_ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST = About(
    load=mnist,
    title="MNIST",
    n_classes=10,
    homepage="http://yann.lecun.com/exdb/mnist/",
    licence="CC BY-SA 3.0",
    parts=(
        Part("train", {"split": "train"}, 60000, files=tuple(_MNIST_DIGESTS)[:2]),
        Part("test", {"split": "test"}, 10000, files=tuple(_MNIST_DIGESTS)[2:]),
    ),
    downloads=tuple(
        Download(f"{_MNIST_ADDRESS}/{name}", name, f"md5:{digest}", False, size)
        for name, (digest, size) in _MNIST_FILES.items()
    ),
    digests=_MNIST_DIGESTS,
    paths=_mnist_paths,
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
    base, name = Path(root), f"MNIST-M {split}"
    for place in (base, base / "mnist_m", base / "MNIST_M"):
        for start in ("mnist_m", "mnistm"):
            folder = place / f"{start}_{split}"
            if folder.is_dir():
                file = folder.with_name(f"{folder.name}_labels.txt")
                paths, labels = _read_list(file, folder)
                with naming(file):
                    return FileImages(folder, paths, name=name, labels=labels, classes=DIGITS)
            array = folder.with_name(f"{folder.name}.npy")
            if array.is_file():
                labels_file = folder.with_name(f"{folder.name}_labels.npy")
                return array_images(array, labels_file, name=name, classes=DIGITS)
    raise MissingData(
        f"{base} holds no folder mnist_m_{split} and no file mnist_m_{split}.npy, one of which "
        f"MNIST-M {split} needs. Name the folder that it is in."
    )


def _read_list(file: Path, folder: Path) -> tuple[list[str], list[int]]:
    """File names and labels of lines ``name label``; files that do not exist are left out."""
    with parsing(file, "a list of images, lines such as 00000000.png 7"):
        rows = [line.rsplit(maxsplit=1) for line in file.read_text("utf-8").splitlines() if line]
        listed = {name: int(label) for name, label in rows}
    there = {entry.name for entry in folder.iterdir()}
    names = [name for name in listed if name in there]
    if len(names) < len(listed) or not names:
        text = f"{len(listed) - len(names):,} of {len(listed):,} images of {file} are missing."
        if not names:
            raise MissingData(text)
        warnings.warn(f"{text} They are left out.", InputWarning, stacklevel=4)
    return names, [listed[name] for name in names]


MNIST_M = About(
    load=mnist_m,
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
    check_choice(split, _SPLITS, name="split")
    text = {"train": "usps", "test": "usps.t"}[split]
    names = [
        f"{place}{name}" for place in _USPS_PLACES for name in (f"{text}.bz2", text, "usps.npz")
    ]
    file = next(filter(Path.is_file, map(Path(root).joinpath, names)), None)
    if file is None:
        raise MissingData(
            f"{root} holds no {text}.bz2, {text} or usps.npz, one of which USPS {split} needs."
        )
    low = 0.0 if file.suffix == ".npz" else -1.0
    with parsing(file, "a file of USPS", fix="Download it again."):
        if file.suffix == ".npz":
            parts = read_npz(file, (f"{split}_data", f"{split}_target"))
            values, digits = parts[f"{split}_data"], parts[f"{split}_target"]
        else:
            content = io.BytesIO(_unpacked(file))
            rows, digits = load_svmlight_file(content, n_features=256, dtype=np.float32)
            values, digits = rows.toarray(), digits - 1
    if values.shape[1:] != (256,) or not len(values) or not ((values >= low) & (values <= 1)).all():
        raise FileError(f"{file} must hold rows of 256 values from {low:g} to 1.")
    pixels = np.rint((values - low) * (255 / (1 - low))).astype(np.uint8).reshape(-1, 16, 16)
    with naming(file):
        return ArrayImages(pixels, name=f"USPS {split}", labels=digits, classes=DIGITS)


_USPS_PLACES = ("", "usps/", "USPS/")
_USPS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
USPS = About(
    load=usps,
    title="USPS",
    n_classes=10,
    homepage="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html#usps",
    licence="none stated; research use",
    parts=(
        Part("train", {"split": "train"}, 7291, files=("usps.bz2",)),
        Part("test", {"split": "test"}, 2007, files=("usps.t.bz2",)),
    ),
    downloads=tuple(
        Download(f"{_USPS}/{name}", name, f"md5:{digest}", unpack=False)
        for name, digest in (
            ("usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197"),
            ("usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118"),
        )
    ),
    paths=lambda name: [f"{place}{name}" for place in _USPS_PLACES],
)
