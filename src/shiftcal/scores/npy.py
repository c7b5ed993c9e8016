"""``.npy``: one array a file, the parts of a set told by the ends of their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError
from shiftcal.scores._assemble import OPTIONAL, from_arrays
from shiftcal.scores._opening import parsing, require_magic
from shiftcal.scores._scores import Scores

_KIND = "a .npy array"
# The second name of a part is the one research code gives it: x_output, x_label, x_feature.
_ENDINGS = {
    "logits": ("logits", "output"),
    "probabilities": ("probabilities",),
    "labels": ("labels", "label"),
    "features": ("features", "feature"),
    "ids": ("ids",),
    "classes": ("classes",),
}
# Above this many bytes the array stays on disk and its pages are read as they are used.
_MAPPED_FROM = 64 << 20


def read(path: Path) -> Scores:
    """Scores from ``x_logits.npy`` (or ``x.npy``) and its siblings ``x_labels.npy`` and so on."""
    kind, stem = _part(path)
    files = {kind: path}
    for name in OPTIONAL:
        found = _sibling(path, stem, name)
        if found is not None:
            files[name] = found
    return from_arrays(path, files, lambda name: read_array(files[name]))


def _part(path: Path) -> tuple[str, str]:
    """What the file's name says it holds, and the beginning its siblings share with it."""
    for part, endings in _ENDINGS.items():
        for ending in endings:
            if path.stem != ending and not path.stem.endswith(f"_{ending}"):
                continue
            if part in OPTIONAL:
                raise FileError(
                    f"{path} is named as the {part} of a set; name the file with its scores, "
                    f"such as {path.stem.removesuffix(ending)}logits.npy."
                )
            return part, path.stem.removesuffix(ending)
    return "logits", f"{path.stem}_"


def _sibling(path: Path, stem: str, part: str) -> Path | None:
    names = [path.with_name(f"{stem}{ending}{path.suffix}") for ending in _ENDINGS[part]]
    found = [name for name in names if name.is_file()]
    if len(found) > 1:
        raise FileError(
            f"{path} has both {found[0].name} and {found[1].name} beside it, and only one can "
            f"hold its {part}. Move the other away."
        )
    return found[0] if found else None


def is_part(path: Path) -> bool:
    """Whether the file's name says that it holds labels or the like, and scores are elsewhere."""
    endings = tuple(ending for part in OPTIONAL for ending in _ENDINGS[part])
    return path.suffix.lower() == ".npy" and f"_{path.stem}".endswith(
        tuple(f"_{ending}" for ending in endings)
    )


def holds_features(path: Path) -> bool:
    """Whether the file's name says that it holds features."""
    return path.stem.rpartition("_")[2] in _ENDINGS["features"]


def read_array(path: Path) -> NDArray[Any]:
    """The array, on disk if it is large."""
    require_magic(path, (b"\x93NUMPY",), _KIND)
    with parsing(path, _KIND):
        if path.stat().st_size >= _MAPPED_FROM:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        return np.load(path, allow_pickle=False)
