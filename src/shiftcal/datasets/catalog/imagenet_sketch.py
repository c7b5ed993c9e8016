"""ImageNet-Sketch: drawings of ImageNet's 1,000 classes."""

from __future__ import annotations

import os
from pathlib import Path

from shiftcal.datasets.about import About, Download, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._imagenet_files import beside, labelled_files
from shiftcal.datasets.containers.files import FileImages
from shiftcal.errors import MissingData

ABOUT = About(
    title="ImageNet-Sketch",
    n_classes=1000,
    homepage="https://github.com/HaohanWang/ImageNet-Sketch",
    licence="none stated for the images; research use",
    parts=(Part("all", {}, n=50_889),),
    downloads=(
        Download(
            "https://huggingface.co/datasets/songweig/imagenet_sketch/resolve/main/data/"
            "ImageNet-Sketch.zip",
            "ImageNet-Sketch.zip",
        ),
    ),
)


def imagenet_sketch(
    root: str | os.PathLike[str], *, class_index: str | os.PathLike[str] | None = None
) -> ImageSet:
    """ImageNet-Sketch from its folders; the classes are ImageNet's 1,000 wnids, sorted.

    Args:
        root: The folder ``sketch``, whose folders are named by wnid, or the one above it.
        class_index: A list of all classes, such as ``imagenet_class_index.json``, where only some
            are there; looked for in the root and beside it by default.

    Raises:
        MissingData: If there are no images.
        FileError: If their labels cannot be told.
    """
    base = Path(root)
    if not base.is_dir():
        raise MissingData(f"{base} is not a folder. Name the one that holds the folder sketch.")
    folder = base / "sketch" if (base / "sketch").is_dir() else base
    found = labelled_files(folder, places=beside(folder, base), class_index=class_index)
    return FileImages(
        folder,
        found.files,
        name="ImageNet-Sketch",
        labels=found.labels,
        classes=found.classes,
    )
