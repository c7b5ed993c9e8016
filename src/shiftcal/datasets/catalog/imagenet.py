"""ImageNet, ImageNet-C, ImageNet-Sketch and ImageNet-V2.

A label is the place of a class among the 1,000 sorted wnids such as ``n01440764``, which is the
order of the outputs of the common checkpoints. Some of the classes, sorted, would give other
indices, so all of them must be known: from the folders if all are there, else from a list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shiftcal.checks import check_choice
from shiftcal.datasets.catalog import About, Download, Part
from shiftcal.datasets.catalog.formats import (
    CORRUPTIONS,
    GROUPS,
    SEVERITIES,
    describe,
    wanted_corruptions,
    wanted_severities,
)
from shiftcal.datasets.image_files import FileImages, find_images
from shiftcal.datasets.image_set import ImageSet, side_of_corrupted
from shiftcal.errors import FileError, MissingData
from shiftcal.files import parsing, read_json

Named = str | os.PathLike[str] | None

N_CLASSES = 1000
_WNID = re.compile(r"n[0-9]{8}")
# Names of lists of classes, and of labels.
_CLASS_LISTS = ("imagenet_class_index.json", "LOC_synset_mapping.txt", "synset_words.txt")
_LABEL_LISTS = ("labels.csv", "labels.txt", "val.csv", "val.txt", "LOC_val_solution.csv")
# No list has as many bytes; a larger file is meant to fill the memory.
_MOST_BYTES = 1 << 24


def _lines(file: Path) -> list[str]:
    if file.is_file() and file.stat().st_size > _MOST_BYTES:
        raise FileError(f"{file} is too large for a list of classes or labels.")
    with parsing(file, "text in UTF-8"):
        return [line.strip() for line in file.read_text("utf-8-sig").splitlines() if line.strip()]


def _read_classes(file: Path) -> tuple[str, ...]:
    """All wnids, sorted, from a list: JSON, or text whose lines begin with one."""
    if file.suffix == ".json":
        with parsing(file, 'a list of classes, {"0": ["n01440764", "tench"], ...}'):
            found = read_json(file, "JSON")
            if isinstance(found, dict):
                found = [found[str(i)] for i in range(len(found))]
            listed = [entry if isinstance(entry, str) else str(entry[0]) for entry in found]
        if listed != sorted(listed):
            raise FileError(f"{file} must have the classes in the order of their wnids.")
    else:
        listed = [re.split(r"[\s,]+", line)[0] for line in _lines(file)]
    wnids = {name for name in listed if _WNID.fullmatch(name)}
    if len(listed) != N_CLASSES or len(wnids) != N_CLASSES:
        raise FileError(
            f"{file} must list ImageNet's {N_CLASSES:,} classes by wnid, each once; it lists "
            f"{len(listed):,}, {len(wnids):,} of them different wnids."
        )
    return tuple(sorted(listed))


def _find_classes(places: Sequence[Path], class_index: Named) -> tuple[str, ...] | None:
    """All wnids from the list that is named, or from one in the places; ``None`` without one."""
    if class_index is not None:
        return _read_classes(Path(class_index))
    files = (place / name for place in places for name in _CLASS_LISTS)
    file = next(filter(Path.is_file, files), None)
    return None if file is None else _read_classes(file)


def _labels_of(
    wnids: Sequence[str],
    source: Path,
    places: Sequence[Path],
    class_index: Named,
    folders: Sequence[str] = (),
) -> tuple[list[int], tuple[str, ...]]:
    """The labels of these wnids, and all wnids, which may be the names of folders."""
    classes = tuple(sorted({*wnids, *folders}))
    if class_index is not None or len(classes) != N_CLASSES:
        listed = _find_classes(places, class_index)
        if listed is None:
            raise FileError(
                f"{source} has {len(classes):,} of ImageNet's {N_CLASSES:,} classes, and a label "
                "is the place among all of them. Put imagenet_class_index.json or "
                f"LOC_synset_mapping.txt into {places[0]}, or name one as class_index. If the "
                "model has only these classes, open it as a plain folder instead."
            )
        if strange := sorted(set(classes).difference(listed)):
            raise FileError(f"{source}: {strange[0]!r} is not in the list of ImageNet's classes.")
        classes = listed
    place = {wnid: i for i, wnid in enumerate(classes)}
    return [place[wnid] for wnid in wnids], classes


def _labels_from_list(file: Path) -> dict[str, str]:
    """Wnids or indices by image, from lines of a file and its label; the rest is ignored."""
    rows = []
    for line in _lines(file):
        name, label, *_ = [*re.split(r"[,\s]+", line.replace('"', ""), maxsplit=2), ""]
        rows.append((Path(name).stem, label))
    if rows and not re.fullmatch(r"n?[0-9]{1,8}", rows[0][1]):  # a header
        rows = rows[1:]
    found = dict(rows)
    wnids = all(_WNID.fullmatch(label) for label in found.values())
    indices = all(re.fullmatch("[0-9]{1,3}", label) for label in found.values())
    if not rows or not (wnids or indices):
        raise FileError(
            f"{file} must have lines of a file and its label, all wnids or all indices from 0 to "
            f"{N_CLASSES - 1}, such as ILSVRC2012_val_00000001.JPEG,65; it has others."
        )
    if twice := next((stem for stem, label in rows if found[stem] != label), None):
        raise FileError(f"{file} must give an image one label; {twice!r} has two that differ.")
    return found


def _labelled(
    folder: Path, places: Sequence[Path], *, labels: Named = None, class_index: Named = None
) -> tuple[list[str], list[int], tuple[str, ...] | None]:
    """Files of a folder, their labels, and the wnids in order if they are known.

    The images are in folders named by wnid, or all together with a list of labels.

    Args:
        folder: Where the images are.
        places: Folders that may hold lists of labels or classes.
        labels: A list of labels, if the caller names one.
        class_index: A list of classes, if the caller names one.
    """
    found = find_images(folder)
    files = [path.as_posix() for path in found]
    tops = [path.parts[0] if len(path.parts) > 1 else "" for path in found]
    strange = [file for file, top in zip(files, tops, strict=True) if not _WNID.fullmatch(top)]
    if labels is None and not strange:
        folders = [entry.name for entry in folder.iterdir() if _WNID.fullmatch(entry.name)]
        return files, *_labels_of(tops, folder, places, class_index, folders)
    candidates = (place / name for name in _LABEL_LISTS for place in places)
    file = Path(labels) if labels is not None else next(filter(Path.is_file, candidates), None)
    if file is None or (labels is None and len(strange) < len(files)):
        raise FileError(
            f"{folder} must have all images in folders named by wnid, or a list of their labels; "
            f"{strange[0]!r} is in no such folder. Put labels.csv (file,label) into {places[0]}, "
            "or name a list as labels."
        )
    given = _labels_from_list(file)
    stems = [path.stem for path in found]
    if missing := [stem for stem in stems if stem not in given]:
        raise FileError(
            f"{file} must give a label to every image; it has none for {len(missing):,} of "
            f"{len(stems):,} in {folder}, such as {missing[0]!r}."
        )
    words = [given[stem] for stem in stems]
    if words[0].isdigit():
        return files, [int(word) for word in words], _find_classes(places, class_index)
    return files, *_labels_of(words, file, places, class_index)


def _places(folder: Path, root: Path) -> tuple[Path, ...]:
    """Where lists may lie: in the root, with the images or above them, and next to the root."""
    return tuple(dict.fromkeys((root, folder, folder.parent, root.absolute().parent)))


def _existing(root: str | os.PathLike[str], title: str) -> Path:
    if not Path(root).is_dir():
        raise MissingData(f"{root} is not a folder. Name the one that holds {title}.")
    return Path(root)


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
      labels are wnids, or indices in the order above.

    Where not all classes are there, ``imagenet_class_index.json`` or ``LOC_synset_mapping.txt``
    must be found, since sorting a part of them would give wrong indices. Every image must have a
    label; the list may have more images.

    Args:
        root: The folder of the images, or one that holds them in ``val``, ``images`` or
            ``ILSVRC/Data/CLS-LOC/val``.
        split: ``"val"``, the only one.
        labels: The list of labels; default: looked for in the root and next to it.
        class_index: The list of classes; default: looked for there.

    Raises:
        MissingData: If there are no images.
        FileError: If their labels are unknown.
    """
    check_choice(split, ("val",), name="split")
    base = _existing(root, "ImageNet's images")
    inside = (base / name for name in ("ILSVRC/Data/CLS-LOC/val", "val", "images"))
    folder = next(filter(Path.is_dir, inside), base)
    files, indices, classes = _labelled(
        folder, _places(folder, base), labels=labels, class_index=class_index
    )
    return FileImages(folder, files, name="ImageNet val", labels=indices, classes=classes)


IMAGENET = About(
    load=imagenet,
    title="ImageNet (ILSVRC 2012) validation",
    n_classes=1000,
    homepage="https://www.image-net.org/challenges/LSVRC/2012/",
    licence="non-commercial research, by agreement",
    parts=(Part("val", {"split": "val"}, n=50_000, per_class=50),),
    by_hand=(
        "Make an account at https://www.image-net.org/download.php, fetch ILSVRC2012_img_val.tar "
        "(MD5 29b22e2961454d5413ddabcf34fc5622) there, unpack it into a folder val, and sort the "
        "images into folders named by wnid or put LOC_val_solution.csv of the Kaggle edition next "
        "to it."
    ),
)


def imagenet_c(
    root: str | os.PathLike[str],
    *,
    corruption: str | Sequence[str] | None = None,
    severity: int | Sequence[int] | str | None = None,
    labels: str | os.PathLike[str] | None = None,
    class_index: str | os.PathLike[str] | None = None,
) -> ImageSet:
    """ImageNet-C from ``<corruption>/<severity>/<wnid>/*.JPEG``; the classes are the sorted wnids.

    The corruptions may also lie in folders of their groups, such as ``noise/gaussian_noise``, and
    the output of ``shiftcal corrupt`` for a folder is read the same. The fields ``corruption`` and
    ``severity`` say of every image where it comes from. All of it is 4,750,000 files, whose names
    take about a gigabyte of memory: ask for what you need.

    The images were resized to 256 and cropped to 224 x 224 before they were corrupted. A network
    with that preprocessing would enlarge them again: remove its resizing, with ``?resize=none`` in
    the spec of the model. :attr:`ready_made` is 224, or what ``shiftcal corrupt --crop`` was.

    Args:
        root: The folder of the corruptions.
        corruption: A name, several one after the other (in a list, or with commas), or all that
            are there, by name (``None`` or ``"all"``).
        severity: From 1 to 5, or several in the same ways; default: all, in rising order.
        labels: A list of labels for images that are not in folders named by wnid; default: looked
            for in the root and next to it, as for ImageNet.
        class_index: A list of all classes, such as ``imagenet_class_index.json``, where only some
            are there; default: looked for there.

    Raises:
        MissingData: If none of the corruptions is there.
        FileError: If one of them or a severity is missing, or labels are unknown.
    """
    base = _existing(root, "ImageNet-C")
    present: dict[str, Path] = {}
    for folder in (base, *(base / group for group in GROUPS if (base / group).is_dir())):
        for entry in sorted(folder.iterdir()):
            if any((entry / str(level)).is_dir() for level in SEVERITIES):
                present.setdefault(entry.name, entry)
    names = wanted_corruptions(corruption, list(present), root=base)
    levels = wanted_severities(severity)
    files: list[str] = []
    indices: list[int] = []
    fields: dict[str, list[Any]] = {"corruption": [], "severity": []}
    kinds: set[tuple[str, ...] | None] = set()
    for name in names:
        for level in levels:
            folder = present[name] / str(level)
            try:
                some, known, classes = _labelled(
                    folder, (base, base.absolute().parent), labels=labels, class_index=class_index
                )
            except MissingData as error:  # other severities are there
                raise FileError(f"{error} {present[name]} has only some severities.") from error
            within = folder.relative_to(base).as_posix()
            files += [f"{within}/{file}" for file in some]
            indices += known
            fields["corruption"] += [name] * len(some)
            fields["severity"] += [level] * len(some)
            kinds.add(classes)
    if len(kinds) > 1:
        raise FileError(f"{base} must have the same classes under every corruption and severity.")
    images = FileImages(
        base,
        files,
        name=f"ImageNet-C {describe(names, levels)}",
        labels=indices,
        classes=kinds.pop(),
        fields=fields,
    )
    images.ready_made = side_of_corrupted(base, published=224)
    return images


_IMAGENET_C_ARCHIVES = {
    "noise.tar": (22_565_673_785, "e80562d7f6c3f8834afb1ecf27252745"),
    "blur.tar": (7_112_704_951, "2d8e81fdd8e07fef67b9334fa635e45c"),
    "weather.tar": (12_797_438_995, "33ffea4db4d93fe4a428c40a6ce0c25d"),
    "digital.tar": (7_757_510_705, "89157860d7b10d5797849337ca2e5c03"),
    "extra.tar": (15_789_490_144, "d492dfba5fc162d8ec2c3cd8ee672984"),
}
IMAGENET_C = About(
    load=imagenet_c,
    title="ImageNet-C",
    n_classes=1000,
    homepage="https://zenodo.org/records/2235448",
    licence="CC BY 4.0; the images beneath are ImageNet's",
    parts=tuple(Part(name, {"corruption": name}, 250_000, 250) for name in CORRUPTIONS),
    downloads=tuple(
        Download(f"https://zenodo.org/records/2235448/files/{name}", name, f"md5:{md5}", size=size)
        for name, (size, md5) in _IMAGENET_C_ARCHIVES.items()
    ),
)


def imagenet_sketch(
    root: str | os.PathLike[str], *, class_index: str | os.PathLike[str] | None = None
) -> ImageSet:
    """ImageNet-Sketch from its folders; the classes are ImageNet's 1,000 wnids, sorted.

    Args:
        root: The folder ``sketch``, whose folders are named by wnid, or the one above it.
        class_index: A list of all classes, such as ``imagenet_class_index.json``, where only some
            are there; default: looked for in the root and next to it.

    Raises:
        MissingData: If there are no images.
        FileError: If their labels are unknown.
    """
    base = _existing(root, "the folder sketch")
    folder = base / "sketch" if (base / "sketch").is_dir() else base
    files, labels, classes = _labelled(folder, _places(folder, base), class_index=class_index)
    return FileImages(folder, files, name="ImageNet-Sketch", labels=labels, classes=classes)


_HUB = "https://huggingface.co/datasets"
IMAGENET_SKETCH = About(
    load=imagenet_sketch,
    title="ImageNet-Sketch",
    n_classes=1000,
    homepage="https://github.com/HaohanWang/ImageNet-Sketch",
    licence="none stated for the images; research use",
    parts=(Part("all", {}, n=50_889),),
    downloads=(
        Download(
            f"{_HUB}/songweig/imagenet_sketch/resolve/main/data/ImageNet-Sketch.zip",
            "ImageNet-Sketch.zip",
        ),
    ),
)


_V2_FOLDERS = {
    "matched-frequency": "imagenetv2-matched-frequency-format-val",
    "threshold-0.7": "imagenetv2-threshold0.7-format-val",
    "top-images": "imagenetv2-top-images-format-val",
}


def imagenet_v2(
    root: str | os.PathLike[str],
    *,
    variant: str = "matched-frequency",
    class_index: str | os.PathLike[str] | None = None,
) -> ImageSet:
    """ImageNet-V2 from its folders, which are named by class index, ``0`` to ``999``.

    The images are in the order of these numbers (2 before 10), and the indices are places among
    ImageNet's sorted wnids.

    Args:
        root: The folder of a variant, such as ``imagenetv2-matched-frequency-format-val``, or the
            one above it.
        variant: ``"matched-frequency"``, ``"threshold-0.7"`` or ``"top-images"``.
        class_index: A list of all classes, such as ``imagenet_class_index.json``, for their names;
            default: looked for in the root and next to it. It is not needed.

    Raises:
        MissingData: If the variant is not there.
        FileError: If a folder is not named by a class.
    """
    check_choice(variant, tuple(_V2_FOLDERS), name="variant")
    base = _existing(root, "ImageNet-V2")
    folder = base / _V2_FOLDERS[variant]
    if not folder.is_dir():
        others = {*_V2_FOLDERS.values()} - {folder.name}
        if base.absolute().name in others or any((base / name).is_dir() for name in others):
            raise MissingData(f"{base} has no folder {folder.name}, only another variant.")
        folder = base
    found = find_images(folder)
    tops = {path.parts[0] for path in found if len(path.parts) > 1}
    numbers = {top: int(top) for top in tops if re.fullmatch("[0-9]{1,3}", top)}
    if tops != set(numbers) or any(len(path.parts) < 2 for path in found):
        raise FileError(
            f"{folder} must have folders named 0 to {N_CLASSES - 1}. Unpack the archive again."
        )
    found.sort(key=lambda path: (numbers[path.parts[0]], path.parts))
    return FileImages(
        folder,
        [path.as_posix() for path in found],
        name=f"ImageNet-V2 {variant}",
        labels=[numbers[path.parts[0]] for path in found],
        classes=_find_classes(_places(folder, base), class_index),
    )


_V2_ARCHIVES = {
    "imagenetv2-matched-frequency.tar.gz": (
        1_264_079_360,
        "f0c37fdf925916b19ea1323cd9a2208cdb6959ba2c32eef2a7fc393835c9ca7c",
    ),
    "imagenetv2-threshold0.7.tar.gz": (
        1_249_906_176,
        "32142bfe998f9cfa4141be691f6a80eeb1e27b24bd532a668eb08c26d98897a2",
    ),
    "imagenetv2-top-images.tar.gz": (
        1_245_927_936,
        "85e4ace30f3f0d660152062254b8759dda66267b27f7ec0fd8d5768f1073a04b",
    ),
}
IMAGENET_V2 = About(
    load=imagenet_v2,
    title="ImageNet-V2",
    n_classes=1000,
    homepage="https://github.com/modestyachts/ImageNetV2",
    licence="MIT, as its makers say where it is published",
    parts=tuple(Part(name, {"variant": name}, n=10_000, per_class=10) for name in _V2_FOLDERS),
    downloads=tuple(
        Download(
            f"{_HUB}/vaishaal/ImageNetV2/resolve/main/{name}", name, f"sha256:{digest}", size=size
        )
        for name, (size, digest) in _V2_ARCHIVES.items()
    ),
)
