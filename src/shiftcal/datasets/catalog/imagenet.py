"""ImageNet (ILSVRC 2012): the 50,000 validation images of 1,000 classes."""

from __future__ import annotations

import os
from pathlib import Path

from shiftcal._checks import check_choice
from shiftcal.datasets.about import About, Part
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.catalog._imagenet_files import beside, labelled_files
from shiftcal.datasets.containers.files import FileImages
from shiftcal.errors import MissingData

ABOUT = About(
    title="ImageNet (ILSVRC 2012) validation",
    n_classes=1000,
    homepage="https://www.image-net.org/challenges/LSVRC/2012/",
    licence="non-commercial research, by agreement",
    parts=(Part("val", {"split": "val"}, n=50_000, per_class=50),),
    by_hand=(
        "Make an account at https://www.image-net.org/download.php, fetch ILSVRC2012_img_val.tar "
        "(MD5 29b22e2961454d5413ddabcf34fc5622) and ILSVRC2012_devkit_t12.tar.gz (MD5 "
        "fa75699e90414af021442c21a62c3abf) there, and unpack the first into a folder val and the "
        "second beside it."
    ),
)
_FOLDERS = ("ILSVRC/Data/CLS-LOC/val", "val", "images")


def imagenet(
    root: str | os.PathLike[str],
    *,
    split: str = "val",
    labels: str | os.PathLike[str] | None = None,
    class_index: str | os.PathLike[str] | None = None,
) -> ImageSet:
    """ImageNet's validation images; the classes are the 1,000 wnids, sorted.

    That is the order of the outputs of the common checkpoints. The labels come from

    - folders named by wnid, ``val/n01440764/*.JPEG``; or
    - a list of files and labels, ``labels.csv``, ``val.txt`` or ``LOC_val_solution.csv``, whose
      labels are wnids, or indices in the order above; or
    - ``ILSVRC2012_validation_ground_truth.txt`` of the development kit with its ``meta.mat``,
      which says what its numbers, in another order, stand for.

    Where not all classes are there, ``imagenet_class_index.json``, ``LOC_synset_mapping.txt`` or
    ``meta.mat`` must be found, since sorting a part of them would give wrong indices. Every image
    must have a label; labels of images that are not there do no harm.

    Args:
        root: The folder of the images, or one that holds them in ``val``, ``images`` or
            ``ILSVRC/Data/CLS-LOC/val``.
        split: ``"val"``, the only one.
        labels: The list of labels; looked for in the root and beside it by default.
        class_index: The list of classes; looked for there by default.

    Raises:
        MissingData: If there are no images.
        FileError: If their labels cannot be told.
    """
    check_choice(split, ("val",), name="split")
    base = Path(root)
    if not base.is_dir():
        raise MissingData(f"{base} is not a folder. Name the one that holds ImageNet's images.")
    inside = (base / name for name in _FOLDERS)
    folder = next((place for place in inside if place.is_dir()), base)
    found = labelled_files(
        folder, places=beside(folder, base), labels=labels, class_index=class_index
    )
    return FileImages(
        folder,
        found.files,
        name="ImageNet val",
        labels=found.labels,
        classes=found.classes,
    )
