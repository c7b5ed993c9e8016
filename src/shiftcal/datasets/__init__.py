"""Sets of images: a path or a name in, images and labels out, a few at a time.

:func:`as_image_set` makes an :class:`ImageSet` of what you have: arrays, a folder of class folders,
parquet, tar shards. :func:`load` knows the published data sets by name, :func:`names` lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shiftcal.lazy import lazy
from shiftcal.registry import DATA_SETS

if TYPE_CHECKING:
    from shiftcal.datasets.image_set import Batch, ChainImages, ImageSet, MixedImages
    from shiftcal.datasets.labels import (
        calibration_split,
        class_groups,
        grouped,
        source_split,
        target_split,
    )
    from shiftcal.datasets.open import as_image_set, load, mix_images

names = DATA_SETS.names

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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "image_set": "Batch ChainImages ImageSet MixedImages",
        "labels": "calibration_split class_groups grouped source_split target_split",
        "open": "as_image_set load mix_images",
    },
)
