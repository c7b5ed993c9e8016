"""From an array, a path, a name or a text to an image set."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.checks import check_count, plain, to_array
from shiftcal.datasets.arrays import ArrayImages, SequenceImages, array_file
from shiftcal.datasets.image_files import (
    SUFFIXES,
    FileImages,
    ParquetImages,
    TarImages,
    class_folder,
    mosaic,
)
from shiftcal.datasets.image_set import ImageSet, MixedImages
from shiftcal.datasets.labels import labels_for
from shiftcal.errors import FileError, InputError, MissingData, UnknownName, suggest
from shiftcal.files import parsing
from shiftcal.registry import DATA_SETS, plain_value, split_spec

_KINDS = ("array", "folder", "mosaic", "parquet", "tar")
_CAN_BE_OPENED = (
    "a folder of class folders, a folder of .parquet or .tar files, an .npy, .npz, .parquet or "
    ".tar file, or NAME:PATH for a published data set"
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
            kind (``folder``, ``array``, ``mosaic``, ``parquet``, ``tar``).
        labels: ``(n,)``, indices or, with classes, names; or the path of an ``.npy``, ``.csv`` or
            ``.txt`` file of them, or ``FILE.npz:KEY``. They replace those of the set. A ``.csv``
            with a column ``file``, ``path`` or ``id`` is matched to the names of the images, and
            may have rows of others; else labels are in the order of the images. Numbers are
            columns of the model, so the set's own names of classes are dropped with them; names
            are looked up among the classes.
        classes: Names of the classes in the order of the indices, instead of the set's own.

    Raises:
        InputError: If it is none of these, or labels and images do not fit.
        FileError: If files are missing or damaged.
    """
    images = _opened(thing)
    if labels is None and classes is None:
        return images
    if isinstance(labels, (str, os.PathLike)):
        with parsing(Path(labels), "labels"):
            return images.relabelled(labels_for(images, labels), classes=classes)
    return images.relabelled(images.labels if labels is None else labels, classes=classes)


def load(name: str, root: str | os.PathLike[str], **options: Any) -> ImageSet:
    """A published data set by its name.

    Args:
        name: One of :func:`shiftcal.datasets.names`.
        root: The folder it is in.
        **options: What it offers, such as ``split`` or ``corruption``.

    Raises:
        UnknownName: If there is no such data set.
        InputError: If it has no such option.
        FileError: If files are missing or damaged.
    """
    return _call(DATA_SETS.get(name).load, name, root, options)


def _opened(thing: Any) -> ImageSet:
    if isinstance(thing, ImageSet):
        return thing
    if isinstance(thing, (str, os.PathLike)):
        return _from_text(os.fspath(thing))
    if isinstance(thing, np.ndarray) or hasattr(thing, "__array__"):
        return ArrayImages(thing)
    if hasattr(thing, "__len__") and hasattr(thing, "__getitem__") and not isinstance(thing, dict):
        listed = isinstance(thing, (list, tuple)) and len(thing) > 0
        if listed and all(isinstance(one, (str, os.PathLike)) for one in thing):
            return FileImages(".", thing, name="image files")
        return SequenceImages(thing)
    raise InputError(
        "images must be an array, a list of images, a data set with a length and items, or a path; "
        f"got {type(thing).__name__}."
    )


def _from_text(text: str) -> ImageSet:
    kind, path, options = ("", text, {}) if Path(text).exists() else split_spec(text)
    if not kind:
        file = Path(text).expanduser()
        kind, path, options = _kind_of(file), text, {}
        if kind == "file":
            return FileImages(file.parent, [file.name], name=text)
    values = {name: plain_value(value) for name, value in options.items()}
    if kind.lower() in _KINDS:
        return _call(_container(kind.lower()), kind, path, values)
    known = DATA_SETS.names()
    if DATA_SETS.canonical(kind) not in known:
        raise UnknownName(
            f"no data set is called {kind!r}, and there is no file {kind}:{path}. "
            f"{suggest(kind.lower(), [*known, *_KINDS])}"
        )
    return load(kind, path, **values)


def _kind_of(path: Path) -> str:
    """The kind of container at a path, or ``"file"`` for one image."""
    if path.is_dir():
        suffixes = {file.suffix.lower() for file in path.iterdir() if file.name[0] != "."}
        return next((kind for kind in ("tar", "parquet") if f".{kind}" in suffixes), "folder")
    if not path.exists():
        raise MissingData(f"{path} does not exist. Images can be in {_CAN_BE_OPENED}.")
    suffix = path.suffix.lower()
    if suffix in (".npy", ".npz", ".tar", ".parquet"):
        return "array" if suffix.startswith(".np") else suffix[1:]
    if suffix not in SUFFIXES:
        raise FileError(f"{path} cannot be opened as images. They can be in {_CAN_BE_OPENED}.")
    return "file"


def _container(kind: str) -> Callable[..., ImageSet]:
    containers: dict[str, Callable[..., ImageSet]] = {
        "array": array_file,
        "folder": class_folder,
        "mosaic": mosaic,
        "parquet": ParquetImages,
        "tar": TarImages,
    }
    return containers[kind]


def _call(
    function: Callable[..., ImageSet],
    name: str,
    path: str | os.PathLike[str],
    options: dict[str, Any],
) -> ImageSet:
    """The set that a loader returns, if it has all these options and they are all it needs."""
    signature = inspect.signature(function)
    try:
        signature.bind(path, **options)
    except TypeError as error:
        known = [key for key, one in signature.parameters.items() if one.kind is one.KEYWORD_ONLY]
        raise InputError(
            f"{name}: {error}. Its options are {', '.join(known) or 'none'}."
        ) from None
    return function(Path(path).expanduser(), **options)


def mix_images(
    images: object, predictions: object, *, ratio: float = 0.65, seed: int = 0
) -> MixedImages:
    """Mixtures of the images of a set, two by two, labelled by what the model predicts for them.

    Image ``a`` gets the partner ``b = π(a)`` of one random permutation of the whole set, and
    ``x = ratio a + (1 - ratio) b``, rounded to uint8. Pairs predicted to be of the same class are
    left out. The label is the prediction for ``a``, which has the larger share. (PseudoCal, Hu et
    al., 2024, whose code permutes inside batches; here partners come from the whole set, so that
    neither batch size nor the order of the images decides who can meet.)

    The attributes ``first`` and ``second`` say which images are in each mixture.

    Args:
        images: A set of images, or what :func:`as_image_set` makes one of. Its labels are not used.
        predictions: Of all of them, in order: class indices ``(n,)``, or logits or probabilities
            ``(n, k)``, whose largest column counts.
        ratio: Share of ``a``, above 0.5 and below 1.
        seed: Of the permutation.

    Raises:
        InputError: If predictions and images do not fit, or no pair is left.
    """
    whole = as_image_set(images)
    if not isinstance(ratio, (int, float, np.number)) or not 0.5 < float(ratio) < 1:
        raise InputError(
            "ratio must be above 0.5, so that the first image decides the label, and below 1; got "
            f"{ratio!r}."
        )
    check_count(seed, name="seed", least=0)
    array = plain(to_array(predictions, name="predictions"), "predictions")
    rows = array.ndim == 2 and array.shape[1] > 1 and array.dtype.kind in "iuf"
    indices = array.ndim == 1 and array.dtype.kind in "iu"
    predicted = array.argmax(axis=1) if rows else array.astype(np.intp) if indices else array
    good = len(array) == len(whole) and (rows or indices) and np.isfinite(array).all()
    if not good or predicted.min() < 0:
        raise InputError(
            f"predictions must be class indices ({len(whole)},) or finite logits ({len(whole)}, "
            f"k), one per image of {whole.name}; got shape {array.shape} of dtype {array.dtype}."
        )
    partner = np.random.default_rng(seed).permutation(len(whole))
    first = np.flatnonzero(predicted != predicted[partner])
    if not len(first):
        raise InputError(
            f"images must be predicted to be of different classes to be mixed; of {whole.name} "
            f"({len(whole):,} images, predicted classes: {len(np.unique(predicted)):,}) no pair "
            "is. Give more images, or use a method that needs no mixed ones, such as SAC."
        )
    return MixedImages(
        whole,
        first,
        partner[first],
        ratio=float(ratio),
        labels=predicted[first],
        name=f"mixtures of {whole.name}",
    )
