"""How many images to give a model at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images
from shiftcal.models import _peak_memory
from shiftcal.models.base import Model

# A ResNet-20 in onnxruntime is as fast with 32 as with 512: more only takes memory.
LARGEST = 256
# What an image is taken to need where that cannot be measured, as a multiple of its own numbers
# as float32: layers of 64 channels at the resolution of the image, and one at work.
ASSUMED = 128 / 3
# Below this, what an allocator rounds to and keeps is too large a part of what is seen.
_CLEAR = 8 << 20


def find_batch_size(model: Model, images: Images) -> int:
    """The largest power of two, of at most :data:`LARGEST`, that the memory budget allows.

    The model runs on copies of one image, 2, 4, 8 ... at a time, until what they take is clearly
    seen: at least 8 MiB, or more than half the budget. With the peak ``p`` of ``n`` images,
    ``m`` images are taken to need ``m p / (n - 1)``. A model that may not be run for that, or whose
    memory cannot be seen, is taken to need :data:`ASSUMED` times the bytes of its input. At least
    one image always goes in, and two are tried, whatever the budget.

    Args:
        model: Whose ``measured_memory`` says whether it may be run, and what to look at.
        images: ``(n, height, width, 3)``; the first is used.
    """
    one = model.preprocessing.apply(images[:1])
    each = ASSUMED * 4 * one.size
    if model.measured_memory is not None:
        each = _measured(model, one, assumed=each)
    size = 1
    while 2 * size <= LARGEST and 2 * size * each <= model.memory_budget:
        size *= 2
    return size


def _measured(model: Model, one: NDArray[np.generic], *, assumed: float) -> float:
    """Bytes an image takes on its way through the model."""
    if not _runs(model, one):  # what is set up only once is no part of it
        return assumed  # it will fail again, on images that can be named
    peak = _peak_memory.begin(model.measured_memory or "process")
    if peak is None:
        return assumed
    n = 2
    while True:
        batch = np.repeat(one, n, axis=0)
        if not _runs(model, batch):
            return model.memory_budget / (n // 2)
        if peak.above() >= _CLEAR or 2 * peak.above() > model.memory_budget or n == LARGEST:
            break
        n *= 2
    _runs(model, batch)  # engines plan their memory by the first run of a shape
    each = peak.above() / (n - 1)
    return each if peak.exact else max(each, assumed)


def _runs(model: Model, batch: NDArray[np.generic]) -> bool:
    try:
        model.rehearse(batch)
    except (Exception, SystemExit):  # a model raises what it likes
        return False
    return True
