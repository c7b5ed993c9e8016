"""ImageNet-V2: three test sets for ImageNet, collected anew; 10 images a class."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from shiftcal._checks import check_choice
from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._imagenet_files import Labelled, beside, labelled_files
from shiftcal.datasets.catalog._wnids import N_CLASSES, find_classes
from shiftcal.datasets.containers.files import FileImages
from shiftcal.datasets.image_files import find_images
from shiftcal.errors import FileError, MissingData

_FROM = "https://huggingface.co/datasets/vaishaal/ImageNetV2/resolve/main"
# The official name first; the last variant was once published under another.
_FOLDERS = {
    "matched-frequency": ("imagenetv2-matched-frequency-format-val",),
    "threshold-0.7": ("imagenetv2-threshold0.7-format-val",),
    "top-images": ("imagenetv2-top-images-format-val", "imagenetv2-topimages-format-val"),
}


def _archive(name: str, size: int, digest: str) -> Download:
    return Download(f"{_FROM}/{name}", name, digest=digest, algorithm="sha256", size=size)


ABOUT = About(
    title="ImageNet-V2",
    n_classes=1000,
    homepage="https://github.com/modestyachts/ImageNetV2",
    licence="MIT, as its makers say where it is published",
    parts=tuple(Part(name, {"variant": name}, n=10_000, per_class=10) for name in _FOLDERS),
    downloads=(
        _archive(
            "imagenetv2-matched-frequency.tar.gz",
            1_264_079_360,
            "f0c37fdf925916b19ea1323cd9a2208cdb6959ba2c32eef2a7fc393835c9ca7c",
        ),
        _archive(
            "imagenetv2-threshold0.7.tar.gz",
            1_249_906_176,
            "32142bfe998f9cfa4141be691f6a80eeb1e27b24bd532a668eb08c26d98897a2",
        ),
        _archive(
            "imagenetv2-top-images.tar.gz",
            1_245_927_936,
            "85e4ace30f3f0d660152062254b8759dda66267b27f7ec0fd8d5768f1073a04b",
        ),
    ),
)


def imagenet_v2(
    root: str | os.PathLike[str],
    *,
    variant: str = "matched-frequency",
    class_index: str | os.PathLike[str] | None = None,
) -> ImageSet:
    """ImageNet-V2 from its folders, which are named by class index, ``0`` to ``999``.

    The images are in the order of these numbers (2 before 10), and the indices are places among
    ImageNet's sorted wnids. Copies whose folders were renamed to wnids are read too.

    Args:
        root: The folder of a variant, such as ``imagenetv2-matched-frequency-format-val``, or the
            one above it.
        variant: ``"matched-frequency"``, ``"threshold-0.7"`` or ``"top-images"``.
        class_index: A list of all classes, such as ``imagenet_class_index.json``, for their names;
            looked for in the root and beside it by default, and not needed.

    Raises:
        MissingData: If the variant is not there.
        FileError: If a folder is not named by a class.
    """
    check_choice(variant, tuple(_FOLDERS), name="variant")
    base = Path(root)
    folder = _folder(base, variant)
    found = _numbered(folder, base, class_index)
    return FileImages(
        folder,
        found.files,
        name=f"ImageNet-V2 {variant}",
        labels=found.labels,
        classes=found.classes,
    )


def _folder(base: Path, variant: str) -> Path:
    if not base.is_dir():
        raise MissingData(f"{base} is not a folder. Name the one that holds ImageNet-V2.")
    for name in _FOLDERS[variant]:
        if (base / name).is_dir():
            return base / name
    others = {name: other for other, names in _FOLDERS.items() for name in names}
    here = others.get(base.absolute().name, variant)
    there = sorted({other for name, other in others.items() if (base / name).is_dir()})
    if here == variant and not there:
        return base
    raise MissingData(
        f"{base} has no folder {_FOLDERS[variant][0]}, and so not the variant {variant!r}; it has "
        f"{', '.join(map(repr, there or [here]))}. Fetch it, or ask for that."
    )


def _numbered(folder: Path, base: Path, class_index: str | os.PathLike[str] | None) -> Labelled:
    """Files by the number of their folder, or by its wnid if it was renamed."""
    tops = [entry.name for entry in folder.iterdir() if entry.is_dir()]
    numbers = {top: int(top) for top in tops if top.isascii() and top.isdigit()}
    places = beside(folder, base)
    if not numbers:
        return labelled_files(folder, places=places, class_index=class_index)
    found = [path for path in find_images(folder) if len(path.parts) > 1]
    bad = next(
        (path for path in found if not 0 <= numbers.get(path.parts[0], -1) < N_CLASSES), None
    )
    if bad is not None or len(set(numbers.values())) < len(numbers) or not found:
        what = f", and {bad.as_posix()!r} is not in one" if bad else ""
        raise FileError(
            f"{folder} must have folders named 0 to {N_CLASSES - 1}, each number once{what}. "
            "Unpack the archive again."
        )
    found.sort(key=lambda path: (numbers[path.parts[0]], path.parts))
    labels = np.array([numbers[path.parts[0]] for path in found], np.intp)
    return Labelled([path.as_posix() for path in found], labels, find_classes(places, class_index))
