"""Images in an ``.npy`` or ``.npz`` file."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from shiftcal._checks import as_text
from shiftcal.datasets.containers.arrays import ArrayImages
from shiftcal.datasets.label_files import labels_for, read_labels
from shiftcal.errors import FileError, InputError, MissingData, ShiftcalError

# What unpacks to more than this from a hundredth of it is meant to fill the memory.
_LARGE = 1 << 30
_SHRINKAGE = 100


def array_file(
    path: str | os.PathLike[str],
    *,
    labels: object = None,
    classes: Sequence[str] | None = None,
    name: str | None = None,
) -> ArrayImages:
    """Images ``(n, height, width, 3)`` of uint8, or without the last axis if grey.

    An ``.npy`` file is mapped. Its labels are those given, else in ``<stem>_labels.npy``, else in
    ``labels.npy`` beside it. An ``.npz`` file has the arrays ``images`` and maybe ``labels``,
    ``classes`` and ``ids``; it is mapped if ``np.savez`` wrote it, and unpacked into memory if
    ``np.savez_compressed`` did.

    Args:
        path: The file.
        labels: ``(n,)``, or the path of a file of them; instead of those that are found.
        classes: Names of the classes, instead of those in the file.
        name: As for every set; by default the path.

    Raises:
        MissingData: If there is no such file.
        FileError: If it is something else, is damaged, or holds Python objects.
    """
    file = Path(path)
    fields: dict[str, NDArray[Any]] = {}
    if file.suffix.lower() == ".npz":
        parts = _read_npz(file)
        labels = parts.get("labels") if labels is None else labels
        if classes is None and "classes" in parts:
            classes = as_text(parts["classes"], "classes").tolist()
        fields = {"id": as_text(parts["ids"], "ids")} if "ids" in parts else {}
        images = parts["images"]
    else:
        with _parsing(file, "an .npy file"):
            images = npy_format.open_memmap(file, mode="r")
        labels = _beside(file) if labels is None else labels
    try:
        if isinstance(labels, (str, os.PathLike)):
            bare = ArrayImages(images, name=name or str(path), fields=fields)
            labels = labels_for(bare, labels)
        return ArrayImages(
            images, name=name or str(path), labels=labels, classes=classes, fields=fields
        )
    except FileError:
        raise
    except InputError as error:
        text = str(error)
        raise InputError(text if str(path) in text else f"{path}: {text}") from error


def _beside(file: Path) -> NDArray[Any] | None:
    for name in (f"{file.stem}_labels.npy", "labels.npy"):
        found = file.with_name(name)
        if found.is_file() and found.name != file.name:
            return read_labels(found)
    return None


def _read_npz(file: Path) -> dict[str, NDArray[Any]]:
    with _parsing(file, "an .npz archive"), zipfile.ZipFile(file) as archive:
        infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if "images" not in infos:
            raise FileError(
                f"{file} has no array 'images'; it has {', '.join(map(repr, infos)) or 'none'}."
            )
        wanted = ("images", "labels", "classes", "ids")
        return {name: _member(file, archive, infos[name]) for name in wanted if name in infos}


def _member(file: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    if info.file_size > _LARGE and info.file_size > _SHRINKAGE * info.compress_size:
        raise FileError(
            f"{file} would unpack from {info.compress_size:,} bytes to {info.file_size:,}, which "
            "no real images do. If they are real, save them without compression."
        )
    if info.filename == "images.npy" and info.compress_type == zipfile.ZIP_STORED:
        return _mapped(file, info)
    with archive.open(info) as opened:
        return npy_format.read_array(opened, allow_pickle=False)


def _mapped(file: Path, info: zipfile.ZipInfo) -> NDArray[Any]:
    with file.open("rb") as opened:
        # In front of the member stand 30 bytes, its name, and a field of any length.
        opened.seek(info.header_offset + 26)
        lengths = np.frombuffer(opened.read(4), "<u2")
        opened.seek(info.header_offset + 30 + int(lengths.sum(dtype=np.int64)))
        version = npy_format.read_magic(opened)
        read = npy_format.read_array_header_1_0
        if version != (1, 0):
            read = npy_format.read_array_header_2_0
        shape, fortran, dtype = read(opened)
        if dtype.hasobject:
            raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
        order: Any = "F" if fortran else "C"
        return np.memmap(file, dtype, "r", opened.tell(), shape, order)


@contextmanager
def _parsing(file: Path, kind: str) -> Iterator[None]:
    """Turn whatever numpy raises into a FileError that names the file."""
    try:
        yield
    except ShiftcalError:
        raise
    except OSError as error:
        raised = MissingData if isinstance(error, FileNotFoundError) else FileError
        raise raised(f"{file} could not be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise FileError(f"{file} needs more memory than there is. Save it as .npy.") from error
    except Exception as error:  # damaged bytes make numpy raise anything
        text = " ".join(str(error).split())[:200]
        if "allow_pickle" in text or "Python objects" in text:
            raise FileError(
                f"{file} holds pickled Python objects, which are never loaded because they can run "
                "code. Save images as uint8, and text as np.array(names, dtype=str)."
            ) from error
        raise FileError(
            f"{file} could not be read as {kind}: it is damaged, cut short, or something else "
            f"({text}). Write it again."
        ) from error
