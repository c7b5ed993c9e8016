"""From an array, a path, a name or a text to an image set."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from shiftcal.checks import check_count, plain, to_array
from shiftcal.datasets.arrays import ArrayImages, MixedImages, SequenceImages, array_file
from shiftcal.datasets.image_files import SUFFIXES, FileImages, class_folder, in_folder, mosaic
from shiftcal.datasets.image_set import ImageSet
from shiftcal.datasets.labels import labels_for
from shiftcal.datasets.tables import HuggingFaceImages, ParquetImages, is_saved
from shiftcal.datasets.tar import TarImages
from shiftcal.errors import FileError, InputError, MissingData, UnknownName
from shiftcal.files import parsing
from shiftcal.registry import DATA_SETS, suggest
from shiftcal.types import Labels

if TYPE_CHECKING:
    from shiftcal.datasets.catalog import About

# --------------------------------------------------------------------------------------
# A data set in one line: ``NAME:PATH?option=value&option=value``.
# --------------------------------------------------------------------------------------

# Two letters at least, since one is a drive on Windows.
_SPEC = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):(.+)", re.DOTALL)
_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False}


@dataclass(frozen=True)
class Spec:
    """What such a line says.

    Attributes:
        name: Of the data set or the kind of container.
        path: Where it is.
        options: What else it says.
    """

    name: str
    path: str
    options: dict[str, Any] = field(default_factory=dict)


def parse_spec(text: str) -> Spec | None:
    """The parts of a line, or ``None`` if it is a path.

    Whole numbers become numbers, ``true``, ``false`` and ``none`` what they are in Python, and an
    option that comes several times a tuple. ``%20`` stands for a space in a value.

    Raises:
        InputError: If an option has no value.
    """
    parts = _SPEC.fullmatch(text)
    if parts is None:
        return None
    path, _, query = parts[2].partition("?")
    options: dict[str, Any] = {}
    for one in filter(None, query.split("&")):
        key, equals, value = one.partition("=")
        if not (key and equals):
            raise InputError(
                f"{text!r}: options are written NAME:PATH?option=value&option=value; got {one!r}."
            )
        key = key.strip().replace("-", "_")
        if key in options:
            before = options[key] if isinstance(options[key], tuple) else (options[key],)
            options[key] = (*before, _value(value))
        else:
            options[key] = _value(value)
    return Spec(parts[1], path, options)


def check_options(function: Callable[..., Any], options: dict[str, Any], *, name: str) -> None:
    """Refuse options that the function does not have, and ask for those it must have.

    Raises:
        InputError: Naming the option, and the nearest there is.
    """
    known = {
        key: parameter
        for key, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    for key in options:
        if key not in known:
            hint = suggest(key, sorted(known)) if known else "It has none."
            raise InputError(f"{name} has no option {key!r}. {hint}")
    for key, parameter in known.items():
        if parameter.default is parameter.empty and key not in options:
            raise InputError(f"{name} needs the option {key}=...; it was not given.")


def _value(text: str) -> Any:
    value = unquote(text)
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else value


# --------------------------------------------------------------------------------------
# From whatever holds images to a set of them.
# --------------------------------------------------------------------------------------

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
        UnknownName: If no data set is called so.
        InputError: If it has no such option.
        FileError: If files are missing or damaged.
    """
    about: About = DATA_SETS.get(name)
    check_options(about.load, options, name=name)
    return about.load(Path(root).expanduser(), **options)


def _opened(thing: Any) -> ImageSet:
    if isinstance(thing, ImageSet):
        return thing
    if isinstance(thing, (str, os.PathLike)):
        text = os.fspath(thing)
        spec = None if Path(text).exists() else parse_spec(text)
        return _from_path(Path(text).expanduser()) if spec is None else _from_spec(spec)
    if isinstance(thing, np.ndarray) or hasattr(thing, "__array__"):
        return ArrayImages(thing)
    if (
        isinstance(thing, (list, tuple))
        and thing
        and all(isinstance(one, (str, os.PathLike)) for one in thing)
    ):
        return FileImages(".", thing, name="image files")
    if hasattr(thing, "__len__") and hasattr(thing, "__getitem__") and not isinstance(thing, dict):
        return SequenceImages(thing)
    raise InputError(
        "images must be an array, a list of images, a data set with a length and items, or a path; "
        f"got {type(thing).__name__}."
    )


def _from_spec(spec: Spec) -> ImageSet:
    kind = spec.name.lower()
    if kind not in _KINDS:
        known = DATA_SETS.names()
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


# --------------------------------------------------------------------------------------
# Pairs of images that a model tells apart, mixed: hard examples with labels nobody had to give.
# --------------------------------------------------------------------------------------


def mix_images(
    images: object, predictions: object, *, ratio: float = 0.65, seed: int = 0
) -> MixedImages:
    """Mixtures of the images of a set, two by two, labelled by what the model says of them.

    Image ``a`` gets the partner ``b = π(a)`` of one random permutation of the whole set, and
    ``x = ratio a + (1 - ratio) b``, rounded to uint8. Pairs predicted to be of the same class are
    left out. The label is the prediction for ``a``, of which there is more. (PseudoCal, Hu et al.,
    2024, whose code permutes inside batches; here partners come from the whole set, so that
    neither batch size nor the order of the images decides who can meet.)

    The mixtures are a set of images that mixes what is read, so that a large set takes no more
    memory than it does by itself. Its attributes ``first`` and ``second`` say which images are in
    each.

    Args:
        images: A set of images, or what :func:`as_image_set` makes one of. Its labels are not used.
        predictions: Of all of them, in order: class indices ``(n,)``, or logits or probabilities
            ``(n, k)``, whose largest column counts.
        ratio: How much of ``a`` there is, above 0.5 and below 1.
        seed: Of the permutation.

    Raises:
        InputError: If predictions and images do not fit, or no pair is left.
    """
    whole = as_image_set(images)
    if not isinstance(ratio, (int, float, np.number)) or not 0.5 < float(ratio) < 1:
        raise InputError(
            "ratio must lie above 0.5, so that the first image decides the label, and below 1; got "
            f"{ratio!r}."
        )
    check_count(seed, name="seed", least=0)
    predicted = _predicted_classes(predictions, whole.name, len(whole))
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


def _predicted_classes(predictions: object, name: str, n: int) -> Labels:
    array = plain(to_array(predictions, name="predictions"), "predictions")
    indices = array.ndim == 1 and array.dtype.kind in "iu"
    rows = array.ndim == 2 and array.shape[1] > 1 and array.dtype.kind in "iuf"
    if len(array) != n or not (indices or rows):
        raise InputError(
            f"predictions must be class indices ({n},) or logits ({n}, k), in the order of the "
            f"{n:,} images of {name}; got shape {array.shape} of dtype {array.dtype}."
        )
    if rows and not np.isfinite(array).all():
        raise InputError("predictions must be finite; there is a NaN or infinity among them.")
    classes: Labels = array.argmax(axis=1) if rows else array.astype(np.intp)
    if classes.min() < 0:
        raise InputError(f"predictions must be class indices from 0 on; got {classes.min()}.")
    return classes
