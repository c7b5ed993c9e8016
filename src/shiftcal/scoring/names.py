"""Names of images, a block at a time: of a million images they take more room than the scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets import ImageSet

# Images that are named at once.
BLOCK = 4096


def are_named(images: ImageSet) -> bool:
    """Whether images have names that are more than numbers."""
    return type(images).ids is not ImageSet.ids or "id" in images.fields


def names_of(images: ImageSet, rows: NDArray[np.int64]) -> NDArray[np.str_] | None:
    """Names of images in memory, if they are more than numbers."""
    return np.array(images.ids(rows), np.str_) if are_named(images) else None


def in_blocks(images: ImageSet, blocks: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.str_]]:
    """Names of images, as wide as the longest of each block."""
    for block in blocks:
        yield np.array(images.ids(block), np.str_)


def width_of(images: ImageSet, blocks: Iterable[NDArray[np.int64]]) -> np.dtype[np.str_]:
    """The type of an array that holds all names."""
    width = max((names.dtype.itemsize for names in in_blocks(images, blocks)), default=4)
    return np.dtype(f"U{width // 4}")


def digest_of_names(images: ImageSet) -> str | None:
    """By which another list of images is noticed; ``None`` if they have numbers only."""
    if not are_named(images):
        return None
    whole = hashlib.blake2b(digest_size=16)
    for start in range(0, len(images), BLOCK):
        names = images.ids(np.arange(start, min(start + BLOCK, len(images))))
        whole.update(json.dumps(names).encode())
    return whole.hexdigest()
