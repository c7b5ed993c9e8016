"""Values drawn towards their channel's mean. Importing this file imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.numerics._jit import compiled

F = np.float32
I32 = np.int32
U32 = np.uint32
# A run holds whole pixels and whole vectors, so that loops over it need not know of channels.
_RUN = 96
_MARGIN = 1e-4


@compiled(error_model="numpy")
def draw_to_mean(images: Any, out: Any, factor: Any) -> None:
    """``floor(mean + factor * (x - mean))`` with the mean of the image's channel.

    Args:
        images: ``(m, s)`` uint8, the channels next to one another.
        out: ``(m, s)`` uint8.
        factor: float32, from 0 to 1.
    """
    m, size = images.shape
    sums = np.empty(_RUN, np.uint32)
    offsets = np.empty(_RUN, np.float32)
    for j in range(m):
        _add_up(images[j], sums)
        _offsets(sums, size // 3, factor, offsets)
        for start in range(0, size, _RUN):
            end = min(start + _RUN, size)
            _draw(images[j, start:end], out[j, start:end], factor, offsets)


@njit(error_model="numpy")
def _add_up(values: Any, sums: Any) -> None:
    """The sum over runs of each place in a run. 2**32 suffices for images of 1.6e9 values."""
    for i in range(_RUN):
        sums[i] = U32(0)
    for start in range(0, values.shape[0], _RUN):
        run = values[start : start + _RUN]
        for i in range(run.shape[0]):
            sums[i] = U32(sums[i] + U32(run[i]))


@njit(error_model="numpy")
def _offsets(sums: Any, pixels: Any, factor: Any, offsets: Any) -> None:
    for c in range(3):
        total = np.int64(0)
        for i in range(c, _RUN, 3):
            total += np.int64(sums[i])
        # The margin keeps images of one colour as they are: rounding, of 2.5e-5 at the most, would
        # take a whole level from most of them.
        offset = F((1.0 - np.float64(factor)) * (total / pixels) + _MARGIN)
        for i in range(c, _RUN, 3):
            offsets[i] = offset


@njit(error_model="numpy")
def _draw(values: Any, result: Any, factor: Any, offsets: Any) -> None:
    for i in range(values.shape[0]):
        result[i] = np.uint8(I32(F(F(F(values[i]) * factor) + offsets[i])))
