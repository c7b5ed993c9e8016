"""Sets of images: a path or a name in, images and labels out, a few at a time.

:func:`as_image_set` makes an :class:`ImageSet` of what you have: arrays, a folder of class folders,
parquet, tar shards. :func:`load` knows the published data sets by name, :func:`names` lists them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shiftcal.registry import DATA_SETS

if TYPE_CHECKING:
    from shiftcal.datasets.arrays import ChainImages, MixedImages
    from shiftcal.datasets.image_set import Batch, ImageSet
    from shiftcal.datasets.labels import class_groups, grouped
    from shiftcal.datasets.open import as_image_set, load, mix_images
    from shiftcal.datasets.splits import calibration_split, source_split, target_split

names = DATA_SETS.names

# Public name -> the file it is taken from, when it is first asked for.
_WHERE = {
    "Batch": "image_set",
    "ChainImages": "arrays",
    "ImageSet": "image_set",
    "MixedImages": "arrays",
    "as_image_set": "open",
    "calibration_split": "splits",
    "class_groups": "labels",
    "grouped": "labels",
    "load": "open",
    "mix_images": "open",
    "source_split": "splits",
    "target_split": "splits",
}

__all__ = [
    "Batch",
    "ChainImages",
    "ImageSet",
    "MixedImages",
    "as_image_set",
    "calibration_split",
    "class_groups",
    "grouped",
    "load",
    "mix_images",
    "names",
    "source_split",
    "target_split",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"shiftcal.datasets.{_WHERE[name]}")
    return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return sorted(__all__)
