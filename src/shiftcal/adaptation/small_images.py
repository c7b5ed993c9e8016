"""Images so few and small that they are read once and trained on from memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal._types import Images
from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.feeds.arrays import ArrayFeed
from shiftcal.adaptation.feeds.augment.pipelines import Pipeline
from shiftcal.adaptation.feeds.base import Feed
from shiftcal.datasets import ImageSet
from shiftcal.errors import FileError
from shiftcal.models import Preprocessing
from shiftcal.numerics._threads import thread_count

# Bytes of pixels that are kept.
_MOST = 1 << 30


def are_small(pipeline: Pipeline, side: int | None, *sets: ImageSet | None) -> bool:
    """Whether nothing random is done to images, and all of them can be kept.

    Args:
        pipeline: What is done to them.
        side: Their height and width then, if that is known.
        *sets: The images.
    """
    if pipeline.steps or side is None:
        return False
    return sum(len(images) for images in sets if images is not None) * 3 * side**2 <= _MOST


def small_feed(
    source: ImageSet,
    target: ImageSet | None,
    pipeline: Pipeline,
    preprocessing: Preprocessing,
    **options: Any,
) -> Feed:
    """Batches of images that are read here, all of them.

    Args:
        source: With labels.
        target: The target's, or ``None``.
        pipeline: How they are framed.
        preprocessing: What the network is given of them.
        **options: ``batch_size``, ``seed``, ``rank`` and ``world``.

    Raises:
        FileError: If one cannot be read.
    """

    def numbers(pixels: Any, _: object) -> Any:
        return torch.from_numpy(preprocessing.numbers(pixels.numpy()))

    others = None if target is None else _read(target, pipeline)
    return ArrayFeed(_read(source, pipeline), source.labels, others, transform=numbers, **options)


def _read(images: ImageSet, pipeline: Pipeline) -> Images:
    read = images.read(np.arange(len(images)), framing=pipeline.framing, threads=thread_count())
    if read.bad:
        raise FileError(
            f"{next(iter(read.bad.values()))} No image is left out of a training silently: mend or "
            "remove it, and start again."
        )
    return read.images
