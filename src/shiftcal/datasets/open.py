"""From whatever holds images to a set of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal._registry import suggest
from shiftcal.datasets import _CATALOG
from shiftcal.datasets._sources import in_folder
from shiftcal.datasets._specs import Spec, check_options, parse_spec
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.containers.array_files import array_file
from shiftcal.datasets.containers.arrays import ArrayImages
from shiftcal.datasets.containers.class_folder import class_folder
from shiftcal.datasets.containers.files import FileImages
from shiftcal.datasets.containers.hf_disk import HuggingFaceImages, is_saved
from shiftcal.datasets.containers.mosaic import mosaic
from shiftcal.datasets.containers.parquet import ParquetImages
from shiftcal.datasets.containers.sequences import SequenceImages
from shiftcal.datasets.containers.tar import TarImages
from shiftcal.datasets.image_files import SUFFIXES
from shiftcal.datasets.label_files import labels_for
from shiftcal.errors import FileError, InputError, MissingData, UnknownName

_KINDS: dict[str, Callable[..., ImageSet]] = {
    "array": array_file,
    "folder": class_folder,
    "huggingface": HuggingFaceImages,
    "mosaic": mosaic,
    "parquet": ParquetImages,
    "tar": TarImages,
}
_CAN_BE_OPENED = (
    "a folder of class folders, a folder of .parquet or .tar files or one that save_to_disk wrote, "
    "an .npy, .npz, .parquet or .tar file, or NAME:PATH for a published data set"
)


def as_image_set(
    thing: object, *, labels: object = None, classes: Sequence[str] | None = None
) -> ImageSet:
    """A set of images from what you have.

    Args:
        thing: A set already; an array ``(n, height, width, 3)`` of uint8, or without the last axis
            if grey; a list of Pillow images, of arrays or of image files; a data set with a length
            and items ``(image, label)``, such as a torch one without transforms; a path; or a line
            ``NAME:PATH?option=value&option=value`` with the name of a published data set or of a
            kind (``folder``, ``array``, ``mosaic``, ``parquet``, ``huggingface``, ``tar``).
        labels: ``(n,)``, indices or, with classes, names; or the path of an ``.npy``, ``.csv`` or
            ``.txt`` file of them, or ``FILE.npz:KEY``. They take the place of those the set has.
            A ``.csv`` with a column ``file``, ``path`` or ``id`` is matched to the names of the
            images, and may have rows of others; else labels are in the order of the images.
            Numbers are columns of the model, so that the set's own names of classes are dropped
            with them; names are looked up among them.
        classes: Names of the classes in the order of the indices, in the place of its own.

    Raises:
        InputError: If it is none of these, or labels and images do not fit.
        FileError: If files are missing or damaged.
    """
    found = _opened(thing)
    if labels is None and classes is None:
        return found
    if isinstance(labels, (str, os.PathLike)):
        labels = labels_for(found, labels)
    return found.relabelled(found.labels if labels is None else labels, classes=classes)


def load(name: str, root: str | os.PathLike[str], **options: Any) -> ImageSet:
    """A published data set by its name.

    Args:
        name: One of :func:`shiftcal.datasets.names`.
        root: The folder it is in.
        **options: What it offers, such as ``split`` or ``corruption``.

    Raises:
        UnknownName: If no data set is called so.
        InputError: If it has no such option.
        FileError: If files are missing or damaged.
    """
    function = _CATALOG.get(name)
    check_options(function, options, name=name)
    found: ImageSet = function(Path(root).expanduser(), **options)
    return found


def _opened(thing: Any) -> ImageSet:
    if isinstance(thing, ImageSet):
        return thing
    if isinstance(thing, (str, os.PathLike)):
        return _from_text(os.fspath(thing))
    if isinstance(thing, np.ndarray) or hasattr(thing, "__array__"):
        return ArrayImages(thing)
    if isinstance(thing, (list, tuple)) and thing and _all_paths(thing):
        return FileImages(".", thing, name="image files")
    if hasattr(thing, "__len__") and hasattr(thing, "__getitem__") and not isinstance(thing, dict):
        return SequenceImages(thing)
    raise InputError(
        "images must be an array, a list of images, a data set with a length and items, or a path; "
        f"got {type(thing).__name__}."
    )


def _all_paths(things: Sequence[object]) -> bool:
    return all(isinstance(one, (str, os.PathLike)) for one in things)


def _from_text(text: str) -> ImageSet:
    spec = None if Path(text).exists() else parse_spec(text)
    return _from_path(Path(text).expanduser()) if spec is None else _from_spec(spec)


def _from_spec(spec: Spec) -> ImageSet:
    kind = spec.name.lower()
    if kind not in _KINDS:
        known = _CATALOG.names()
        if kind.replace("_", "-") in known:
            return load(spec.name, spec.path, **spec.options)
        raise UnknownName(
            f"no data set is called {spec.name!r}, and no file {spec.name}:{spec.path}. "
            f"{suggest(kind, [*known, *_KINDS])}"
        )
    check_options(_KINDS[kind], spec.options, name=kind)
    return _KINDS[kind](Path(spec.path).expanduser(), **spec.options)


def _from_path(path: Path) -> ImageSet:
    if path.is_dir():
        return _from_folder(path)
    name = path.name.lower()
    if name.endswith((".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")):
        return TarImages(path)
    if name.endswith(".parquet"):
        return ParquetImages(path)
    if not path.exists():
        raise MissingData(f"{path} does not exist. Images can be in {_CAN_BE_OPENED}.")
    if name.endswith((".npy", ".npz")):
        return array_file(path)
    if name.endswith(SUFFIXES):
        return FileImages(path.parent, [path.name], name=str(path))
    raise FileError(f"{path} cannot be opened as images. They can be in {_CAN_BE_OPENED}.")


def _from_folder(folder: Path) -> ImageSet:
    if is_saved(folder):
        return HuggingFaceImages(folder)
    tars, tables = in_folder(folder, ".tar"), in_folder(folder, ".parquet")
    if tars and tables:
        raise FileError(
            f"{folder} holds {tars[0].name} and {tables[0].name}; it is unclear which has the "
            f"images. Say tar:{folder} or parquet:{folder}."
        )
    if tars:
        return TarImages(folder)
    return ParquetImages(folder) if tables else class_folder(folder)
