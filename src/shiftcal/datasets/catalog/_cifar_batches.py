"""Batches of CIFAR-10 in a folder: which there are, their labels, and where their images are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.catalog._cifar_names import CLASSES
from shiftcal.datasets.catalog._cifar_pickle import as_pixels, read_pickle
from shiftcal.datasets.catalog._cifar_rows import PIXELS, Rows
from shiftcal.errors import FileError, MissingData

FILES = {
    "test": ("test_batch",),
    "train": tuple(f"data_batch_{i}" for i in range(1, 6)),
}
_FOLDERS = {"": "cifar-10-batches-py", ".bin": "cifar-10-batches-bin"}


def find_batches(root: Path, split: str) -> list[Path]:
    """The files of a split, in order; python batches are preferred to binary ones.

    Raises:
        MissingData: If there are none.
        FileError: If there are not all.
    """
    if not root.is_dir():
        raise MissingData(
            f"{root} is not a folder. Unpack cifar-10-python.tar.gz and name the folder that holds "
            "cifar-10-batches-py."
        )
    for suffix, name in _FOLDERS.items():
        for folder in (root, root / name):
            files = [folder / f"{batch}{suffix}" for batch in FILES[split]]
            missing = [file.name for file in files if not file.is_file()]
            if not missing:
                return files
            if len(missing) < len(files):
                raise FileError(
                    f"{folder} has only some batches: {', '.join(missing)} must be there too. "
                    "Unpack the archive again."
                )
    raise MissingData(
        f"{root} holds no CIFAR-10: there must be {FILES[split][0]} or {FILES[split][0]}.bin in it "
        f"or in its folder {' or '.join(_FOLDERS.values())}. If it holds the .tar.gz, unpack that."
    )


def read_batch(file: Path) -> tuple[Rows, NDArray[np.intp]]:
    """Where the images of a batch are, and their labels.

    Raises:
        FileError: If it is damaged or cut short, or labels and images do not fit.
    """
    rows, labels = _binary(file) if file.suffix == ".bin" else _python(file)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) != rows.n:
        raise FileError(
            f"{file} must have one label an image; it has {rows.n:,} images and labels of shape "
            f"{labels.shape}. Unpack the archive again."
        )
    if labels.min() < 0 or labels.max() >= len(CLASSES):
        raise FileError(
            f"{file} must have labels from 0 to {len(CLASSES) - 1}; it has {labels.min()} to "
            f"{labels.max()}. It belongs to another data set, or is damaged."
        )
    return rows, labels.astype(np.intp)


def read_names(folder: Path) -> Sequence[str]:
    """Names of the classes from the file beside the batches; if there is none, the known ones.

    Raises:
        FileError: If it does not name ten.
    """
    text, pickled = folder / "batches.meta.txt", folder / "batches.meta"
    if text.is_file():
        source, names = text, text.read_text("utf-8", "replace").split()
    elif pickled.is_file():
        source, listed = pickled, read_pickle(pickled)[0].get("label_names")
        names = [
            name.decode("utf-8", "replace") if isinstance(name, bytes) else name
            for name in (listed if isinstance(listed, list) else [])
            if isinstance(name, (bytes, str))
        ]
    else:
        return CLASSES
    if len(set(names)) != len(CLASSES):
        raise FileError(
            f"{source} must name the {len(CLASSES)} classes of CIFAR-10; it names "
            f"{len(set(names))}."
        )
    return names


def _python(file: Path) -> tuple[Rows, NDArray[np.intp]]:
    batch, content = read_pickle(file)
    pixels, raw = as_pixels(file, batch.get("data"))
    listed = batch.get("labels")
    if not isinstance(listed, list) or not all(type(label) is int for label in listed):
        raise FileError(f"{file} must hold a list of whole numbers as labels; it does not.")
    # Mapped where they stand, not even one batch has to be held.
    offset = content.find(raw)
    held = pixels if offset < 0 else None
    return Rows(file, max(offset, 0), len(pixels), held=held), np.array(listed or [-1])


def _binary(file: Path) -> tuple[Rows, NDArray[np.intp]]:
    size = file.stat().st_size
    n, rest = divmod(size, 1 + PIXELS)
    if rest or not n:
        raise FileError(
            f"{file} must hold records of {1 + PIXELS:,} bytes, a label and its pixels; its "
            f"{size:,} bytes are no multiple of that. It is cut short: unpack the archive again."
        )
    records = np.memmap(file, np.uint8, "r", shape=(n, 1 + PIXELS))
    return Rows(file, 0, n, lead=1), np.array(records[:, 0], np.intp)
