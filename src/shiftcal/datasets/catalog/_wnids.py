"""The classes of ImageNet: 1,000 wnids such as ``n01440764``; the index is the place when sorted.

That is the order of the outputs of the common checkpoints. A part of the classes, sorted, would
give other indices, so all of them must be known: from the folders if all are there, otherwise from
a file that lists them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from shiftcal.datasets.catalog._imagenet_meta import read_meta
from shiftcal.errors import FileError

N_CLASSES = 1000
_WORDS = re.compile(r"[^\s,]+")
_WNID = re.compile(r"n[0-9]{8}")
_MOST_BYTES = 1 << 24
# What such a file is called where people have one.
_LISTS = (
    "imagenet_class_index.json",
    "LOC_synset_mapping.txt",
    "synset_words.txt",
    "synsets.txt",
    "imagenet_synsets.txt",
    "meta.mat",
    "ILSVRC2012_devkit_t12/data/meta.mat",
)


def is_wnid(name: str) -> bool:
    """Whether a name is ``n`` and eight digits."""
    return _WNID.fullmatch(name) is not None


def find_classes(
    places: Sequence[Path], given: str | os.PathLike[str] | None
) -> tuple[str, ...] | None:
    """All wnids in order, from the file that is given or lies in one of the places, if any does.

    Raises:
        FileError: If it is damaged or does not list the 1,000 classes.
    """
    if given is not None:
        return read_classes(Path(given))
    for place in places:
        for name in _LISTS:
            if (place / name).is_file():
                return read_classes(place / name)
    return None


def all_classes(
    there: Collection[str],
    *,
    where: Path,
    places: Sequence[Path],
    given: str | os.PathLike[str] | None,
) -> tuple[str, ...]:
    """All wnids in order, where those of some images are known.

    Args:
        there: The wnids of the images.
        where: What names them, for messages.
        places: Folders that may hold a list of all.
        given: Such a list, if the caller has named one.

    Raises:
        FileError: If they are not all and no list is found, or one is not in the list.
    """
    if given is None and len(set(there)) == N_CLASSES:
        return tuple(sorted(there))
    classes = find_classes(places, given)
    if classes is None:
        raise FileError(
            f"{where} has {len(set(there)):,} of ImageNet's {N_CLASSES:,} classes, and a label is "
            "the place among all of them. Put imagenet_class_index.json or LOC_synset_mapping.txt "
            f"into {places[0]}, or name one as class_index. If the model has only these classes, "
            "open it as a plain folder instead."
        )
    strange = sorted(set(there) - set(classes))
    if strange:
        raise FileError(
            f"{where} must hold classes of ImageNet's {N_CLASSES:,}; {strange[0]!r} is not one of "
            "them by the list of classes. Take it out, or name the right list as class_index."
        )
    return classes


def read_classes(file: Path) -> tuple[str, ...]:
    """All wnids in order from a list of them.

    Read are ``imagenet_class_index.json`` (``{"0": ["n01440764", "tench"], ...}``), a list of
    wnids in JSON, text whose lines begin with a wnid, and ``meta.mat``.

    Raises:
        FileError: If it is missing, damaged, or does not list the 1,000 classes; or if it gives
            them indices other than their place when sorted.
    """
    if not file.is_file():
        raise FileError(f"{file} is not a file. Name one that lists the classes of ImageNet.")
    if file.suffix == ".mat":
        listed = list(read_meta(file).values())
    elif file.suffix == ".json":
        listed = _from_json(file)
    else:
        listed = [words[0] for line in _text(file).splitlines() if (words := _WORDS.findall(line))]
    classes = tuple(sorted(listed))
    bad = next((name for name in classes if not is_wnid(name)), None)
    if bad is not None or len(set(classes)) != N_CLASSES or len(classes) != N_CLASSES:
        what = f"{len(set(classes)):,} different ones" if bad is None else f"{bad!r}"
        raise FileError(
            f"{file} must list ImageNet's {N_CLASSES:,} classes by wnid, each once; it has {what}."
        )
    return classes


def _from_json(file: Path) -> list[str]:
    try:
        found: Any = json.loads(_text(file))
        if isinstance(found, dict):
            found = [found[str(i)] for i in range(len(found))]
        listed = [entry if isinstance(entry, str) else str(entry[0]) for entry in found]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise FileError(
            f"{file} could not be read as a list of classes in JSON, "
            f'{{"0": ["n01440764", "tench"], ...}}: {error}.'
        ) from error
    if listed != sorted(listed):
        raise FileError(
            f"{file} must have the classes in the order of their wnids, which is that of the "
            "outputs of common models; it has another."
        )
    return listed


def _text(file: Path) -> str:
    if file.stat().st_size > _MOST_BYTES:
        raise FileError(f"{file} is too large for a list of classes.")
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{file} could not be read as text: {error}.") from error
