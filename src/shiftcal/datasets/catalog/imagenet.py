"""ImageNet, ImageNet-C, ImageNet-Sketch and ImageNet-V2.

A label is the place of a class among the 1,000 sorted wnids such as ``n01440764``, which is the
order of the outputs of the common checkpoints. Some of the classes, sorted, would give other
indices, so all of them must be known: from the folders if all are there, else from
``imagenet_class_index.json`` in the root or next to it.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from shiftcal.checks import check_choice
from shiftcal.datasets.catalog import (
    PUBLISHED,
    About,
    Download,
    Root,
    Several,
    chosen,
    inside,
)
from shiftcal.datasets.image_files import FileImages, find_images
from shiftcal.datasets.image_set import ImageSet
from shiftcal.datasets.labels import labels_for
from shiftcal.errors import FileError
from shiftcal.files import parsing, read_json

N_CLASSES = 1000
_WNID = re.compile(r"n[0-9]{8}")
_LIST = "imagenet_class_index.json"


def _listed_classes(root: Path) -> tuple[str, ...] | None:
    """All wnids from the list of classes in the root or next to it; ``None`` without one."""
    places = (root, root.absolute().parent)
    file = next((place / _LIST for place in places if (place / _LIST).is_file()), None)
    if file is None:
        return None
    with parsing(file, 'a list of classes, {"0": ["n01440764", "tench"], ...}'):
        listed = read_json(file, "JSON")
        wnids = tuple(str(listed[str(i)][0]) for i in range(N_CLASSES))
    if list(wnids) != sorted(set(wnids)):
        raise FileError(f"{file} must list ImageNet's 1,000 wnids in their order, each once.")
    return wnids


def _labelled(folder: Path, root: Path, name: str) -> FileImages:
    """The images of a folder in folders named by wnid, or all together with ``labels.csv``."""
    found, classes = find_images(folder), _listed_classes(root)
    labels: object
    if all(_WNID.fullmatch(path.parts[0]) for path in found):
        there = sorted(entry.name for entry in folder.iterdir() if _WNID.fullmatch(entry.name))
        if len(there) == N_CLASSES:
            classes = tuple(there)
        if classes is None or not set(there).issubset(classes):
            raise FileError(
                f"{folder} has {len(there):,} of ImageNet's 1,000 classes, and a label is the "
                f"place among all of them. Put {_LIST} into {root}. If the model has only these "
                "classes, open it as a plain folder."
            )
        labels = [path.parts[0] for path in found]
    elif (root / "labels.csv").is_file():
        labels = labels_for(FileImages(folder, found, name=name), root / "labels.csv")
    else:
        raise FileError(
            f"{folder} must have its images in folders named by wnid, or {root} a list of their "
            f"labels, labels.csv with the columns file and label; {found[0]} has none."
        )
    return FileImages(folder, found, name=name, labels=labels, classes=classes)


def imagenet(root: Root, *, split: str = "val") -> ImageSet:
    """ImageNet's validation images; the classes are the 1,000 wnids, sorted.

    That is the order of the outputs of the common checkpoints. The labels come from folders named
    by wnid, ``val/n01440764/*.JPEG``, or from ``labels.csv`` in the root, whose columns ``file``
    and ``label`` name every image and its index. Where not all classes are there,
    ``imagenet_class_index.json`` must be, since sorting a part of them would give wrong indices.

    Args:
        root: The folder of the images, or the one that holds them in ``val`` or ``images``.
        split: ``"val"``, the only one.

    Raises:
        MissingData: If there are no images.
        FileError: If their labels are unknown.
    """
    check_choice(split, ("val",), name="split")
    return _labelled(inside(root, "val", "images"), Path(root), "ImageNet val")


IMAGENET = About(
    load=imagenet,
    title="ImageNet (ILSVRC 2012) validation",
    n_classes=N_CLASSES,
    homepage="https://www.image-net.org/challenges/LSVRC/2012/",
    licence="non-commercial research, by agreement",
    counts={"val": 50_000},
    balanced=True,
    by_hand=(
        "Make an account at https://www.image-net.org/download.php, fetch ILSVRC2012_img_val.tar "
        "(MD5 29b22e2961454d5413ddabcf34fc5622) there, unpack it into a folder val, and sort the "
        "images into folders named by wnid."
    ),
)


def imagenet_c(root: Root, *, corruption: Several = None, severity: Several = None) -> ImageSet:
    """ImageNet-C from ``<corruption>/<severity>/<wnid>/*.JPEG``; the classes are the sorted wnids.

    The output of ``shiftcal corrupt`` for a folder is read the same. The fields ``corruption`` and
    ``severity`` say of every image where it comes from. All of it is 4,750,000 files, whose names
    take about a gigabyte of memory: ask for what you need.

    The images were resized to 256 and cropped to 224 x 224 before they were corrupted. A network
    with that preprocessing would enlarge them again: remove its resizing, with ``?resize=none`` in
    the spec of the model. :attr:`ready_made` is 224.

    Args:
        root: The folder of the corruptions.
        corruption: A name, several one after the other (in a list, or with commas), or all that
            are there, by name (``None`` or ``"all"``).
        severity: From 1 to 5, or several in the same ways; default: all, in rising order.

    Raises:
        MissingData: If a corruption or severity is not there.
        FileError: If labels are unknown.
    """
    base = Path(root)
    present = {level.parent.name for level in base.glob("*/[1-5]") if level.is_dir()}
    names, levels, title = chosen(corruption, severity, present, base)
    parts = [
        (name, level, _labelled(base / name / str(level), base, f"ImageNet-C {name} {level}"))
        for name in names
        for level in levels
    ]
    if len({part.classes for *_, part in parts}) > 1:
        raise FileError(f"{base} must have the same classes under every corruption and severity.")
    images = FileImages(
        base,
        [f"{name}/{level}/{file}" for name, level, part in parts for file in part.files],
        name=f"ImageNet-C {title}",
        labels=np.concatenate([np.asarray(part.labels) for *_, part in parts]),
        classes=parts[0][2].classes,
        fields={
            "corruption": [name for name, _, part in parts for _ in part.files],
            "severity": [level for _, level, part in parts for _ in part.files],
        },
    )
    if not (base / "corrupted.json").exists():  # which `shiftcal corrupt` writes
        images.ready_made = 224
    return images


_IMAGENET_C = "https://zenodo.org/records/2235448"
IMAGENET_C = About(
    load=imagenet_c,
    title="ImageNet-C",
    n_classes=N_CLASSES,
    homepage=_IMAGENET_C,
    licence="CC BY 4.0; the images beneath are ImageNet's",
    counts=dict.fromkeys(PUBLISHED, 250_000),
    option="corruption",
    balanced=True,
    downloads=tuple(
        Download(f"{_IMAGENET_C}/files/{name}.tar", f"md5:{md5}", size)
        for name, size, md5 in (
            ("noise", 22_565_673_785, "e80562d7f6c3f8834afb1ecf27252745"),
            ("blur", 7_112_704_951, "2d8e81fdd8e07fef67b9334fa635e45c"),
            ("weather", 12_797_438_995, "33ffea4db4d93fe4a428c40a6ce0c25d"),
            ("digital", 7_757_510_705, "89157860d7b10d5797849337ca2e5c03"),
            ("extra", 15_789_490_144, "d492dfba5fc162d8ec2c3cd8ee672984"),
        )
    ),
)


def imagenet_sketch(root: Root) -> ImageSet:
    """ImageNet-Sketch from its folders; the classes are ImageNet's 1,000 wnids, sorted.

    Args:
        root: The folder ``sketch``, whose folders are named by wnid, or the one above it.

    Raises:
        MissingData: If there are no images.
        FileError: If their labels are unknown.
    """
    return _labelled(inside(root, "sketch"), Path(root), "ImageNet-Sketch")


_HUB = "https://huggingface.co/datasets"
IMAGENET_SKETCH = About(
    load=imagenet_sketch,
    title="ImageNet-Sketch",
    n_classes=N_CLASSES,
    homepage="https://github.com/HaohanWang/ImageNet-Sketch",
    licence="none stated for the images; research use",
    counts={"all": 50_889},
    option="",
    downloads=(Download(f"{_HUB}/songweig/imagenet_sketch/resolve/main/data/ImageNet-Sketch.zip"),),
)


_V2_FOLDERS = {
    "matched-frequency": "imagenetv2-matched-frequency-format-val",
    "threshold-0.7": "imagenetv2-threshold0.7-format-val",
    "top-images": "imagenetv2-top-images-format-val",
}


def imagenet_v2(root: Root, *, variant: str = "matched-frequency") -> ImageSet:
    """ImageNet-V2 from its folders, which are named by class index, ``0`` to ``999``.

    The images are in the order of these numbers (2 before 10), and the indices are places among
    ImageNet's sorted wnids, which are the classes if ``imagenet_class_index.json`` is in the root.

    Args:
        root: The folder that holds those of the variants, such as
            ``imagenetv2-matched-frequency-format-val``.
        variant: ``"matched-frequency"``, ``"threshold-0.7"`` or ``"top-images"``.

    Raises:
        MissingData: If the variant is not there.
        FileError: If a folder is not named by a class.
    """
    check_choice(variant, tuple(_V2_FOLDERS), name="variant")
    folder = Path(root, _V2_FOLDERS[variant])
    found = find_images(folder)
    if not all(re.fullmatch("[0-9]{1,3}", path.parts[0]) for path in found):
        raise FileError(f"{folder} must have folders named 0 to 999. Unpack the archive again.")
    found.sort(key=lambda path: (int(path.parts[0]), path.parts))
    return FileImages(
        folder,
        found,
        name=f"ImageNet-V2 {variant}",
        labels=[int(path.parts[0]) for path in found],
        classes=_listed_classes(Path(root)),
    )


_IMAGENET_V2 = f"{_HUB}/vaishaal/ImageNetV2/resolve/main/imagenetv2"
IMAGENET_V2 = About(
    load=imagenet_v2,
    title="ImageNet-V2",
    n_classes=N_CLASSES,
    homepage="https://github.com/modestyachts/ImageNetV2",
    licence="MIT, as its makers say where it is published",
    counts=dict.fromkeys(_V2_FOLDERS, 10_000),
    option="variant",
    balanced=True,
    downloads=(
        Download(
            f"{_IMAGENET_V2}-matched-frequency.tar.gz",
            "sha256:f0c37fdf925916b19ea1323cd9a2208cdb6959ba2c32eef2a7fc393835c9ca7c",
            1_264_079_360,
        ),
        Download(
            f"{_IMAGENET_V2}-threshold0.7.tar.gz",
            "sha256:32142bfe998f9cfa4141be691f6a80eeb1e27b24bd532a668eb08c26d98897a2",
            1_249_906_176,
        ),
        Download(
            f"{_IMAGENET_V2}-top-images.tar.gz",
            "sha256:85e4ace30f3f0d660152062254b8759dda66267b27f7ec0fd8d5768f1073a04b",
            1_245_927_936,
        ),
    ),
)
