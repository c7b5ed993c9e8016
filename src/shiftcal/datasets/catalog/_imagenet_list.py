"""Labels of images that are not in class folders: from a list, or from the development kit."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from shiftcal.datasets.catalog._imagenet_meta import read_meta
from shiftcal.datasets.catalog._wnids import N_CLASSES, all_classes, find_classes, is_wnid
from shiftcal.errors import FileError

_LISTS = ("labels.csv", "labels.txt", "val.csv", "val.txt", "LOC_val_solution.csv")
_TRUTH = "ILSVRC2012_validation_ground_truth.txt"
_KIT = ("", "data", "ILSVRC2012_devkit_t12/data")
_NUMBERED = re.compile(r"ILSVRC2012_val_([0-9]{8})")


def labels_of(
    stems: Sequence[str],
    *,
    where: Path,
    places: Sequence[Path],
    labels: str | os.PathLike[str] | None,
    class_index: str | os.PathLike[str] | None,
) -> tuple[list[int], tuple[str, ...] | None]:
    """The label of each image, and the classes if they are known.

    Args:
        stems: File names of the images, without what is behind the last dot.
        where: The folder of the images.
        places: Folders that may hold the list.
        labels: The list, if the caller has named one.
        class_index: The list of classes, if the caller has named one.

    Raises:
        FileError: If there is no list, it is damaged, or an image is not in it.
    """
    listed = _find(places, labels)
    if listed is None:
        raise FileError(
            f"{where} has images that are not in folders named by wnid, such as "
            f"{stems[0]!r}, so a list of labels is needed. Put labels.csv (file,label) or "
            f"{_TRUTH} and meta.mat into {places[0]}, or name one as labels."
        )
    given = _from_kit(listed, stems) if listed.name == _TRUTH else _from_list(listed)
    missing = [stem for stem in stems if stem not in given]
    if missing:
        raise FileError(
            f"{listed} must give a label to every image; it has none for {len(missing):,} of "
            f"{len(stems):,} in {where}, such as {missing[0]!r}."
        )
    if all(isinstance(label, str) for label in given.values()):
        named = {str(label) for label in given.values()}
        classes = all_classes(named, where=listed, places=places, given=class_index)
        position = {wnid: i for i, wnid in enumerate(classes)}
        return [position[str(given[stem])] for stem in stems], classes
    return [int(given[stem]) for stem in stems], find_classes(places, class_index)


def _find(places: Sequence[Path], labels: str | os.PathLike[str] | None) -> Path | None:
    if labels is not None:
        if not Path(labels).is_file():
            raise FileError(f"{labels} is not a file. Name a list of labels.")
        return Path(labels)
    candidates = [place / name for place in places for name in _LISTS]
    candidates += [place / kit / _TRUTH for place in places for kit in _KIT]
    return next((file for file in candidates if file.is_file()), None)


def _from_kit(file: Path, stems: Sequence[str]) -> Mapping[str, str | int]:
    """Wnids by stem; line ``i`` of the ground truth is the number of image ``i`` in meta.mat."""
    meta = file.with_name("meta.mat")
    if not meta.is_file():
        raise FileError(
            f"{file} numbers the classes in an order of its own, and only {meta.name} says which: "
            "it must be beside it. It comes in ILSVRC2012_devkit_t12.tar.gz."
        )
    wnids = read_meta(meta)
    lines = _lines(file)
    found: dict[str, str | int] = {}
    for stem in stems:
        number = _NUMBERED.fullmatch(stem)
        if number is None or not 1 <= int(number[1]) <= len(lines):
            continue
        text = lines[int(number[1]) - 1].strip()
        if not text.isascii() or not text.isdigit() or int(text) not in wnids:
            raise FileError(
                f"{file} must hold numbers of classes from 1 to {len(wnids):,}; line "
                f"{int(number[1])} is {text[:40]!r}."
            )
        found[stem] = wnids[int(text)]
    return found


def _from_list(file: Path) -> Mapping[str, str | int]:
    """Wnids or indices by stem."""
    rows = [_row(line) for line in _lines(file) if line.strip()]
    kinds = ["wnid" if is_wnid(label) else _whole(label) for _, label in rows]
    if kinds and kinds[0] == "":  # a header
        rows, kinds = rows[1:], kinds[1:]
    if not rows or "" in kinds or len(set(kinds)) > 1:
        raise FileError(
            f"{file} must have lines of a file and its label, all wnids or all indices from 0 to "
            f"{N_CLASSES - 1}, such as ILSVRC2012_val_00000001.JPEG,65; it has others."
        )
    by_stem = dict(rows)
    twice = next((stem for stem, label in rows if by_stem[stem] != label), None)
    if twice is not None:
        raise FileError(f"{file} must give an image one label; {twice!r} has two that differ.")
    if kinds[0] == "wnid":
        return by_stem
    found = {stem: int(label) for stem, label in rows}
    low, high = min(found.values()), max(found.values())
    if high >= N_CLASSES:
        hint = " If they count from 1, subtract 1." if low >= 1 and high == N_CLASSES else ""
        raise FileError(
            f"{file} must have labels from 0 to {N_CLASSES - 1}; they go from {low} to {high}."
            f"{hint}"
        )
    return found


def _row(line: str) -> tuple[str, str]:
    """Stem of a file and its label, with a comma or spaces between; the rest is left out."""
    if "," in line:
        name, _, rest = line.partition(",")
        words = rest.partition(",")[0].split()
    else:
        name, *words = line.split() or [""]
    return Path(name.strip().strip('"')).stem, words[0].strip('"') if words else ""


def _whole(text: str) -> str:
    return "index" if text.isascii() and text.isdigit() and len(text) < 9 else ""


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{file} could not be read as text: {error}.") from error
    return text.splitlines()
