"""Crops of textures laid over images. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.counter_kernels import word
from shiftcal.numerics._jit import compiled

_WHITE = 255.0


@njit(inline="always")
def _below(count: Any, i: Any, a: Any, b: Any) -> Any:
    """A number from 0 to ``count - 1`` out of the ``i``-th word of the stream."""
    return np.int64((np.uint64(word(i, a, b)) * np.uint64(count)) >> np.uint64(32))


@compiled()
def blend(images: Any, out: Any, texels: Any, textures: Any, weights: Any, keys: Any) -> None:
    """``floor(min(weights[0] x + weights[1] texture, 255))`` with a random crop for each image.

    Words 0, 1 and 2 of an image's stream choose the texture, the row and the column.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        texels: The values of all textures, flat uint8.
        textures: ``(k, 5)`` int64: where each begins, its height and width in pixels, and how
            many rows and columns a crop can begin at. Crops go on at the other side of a texture.
        weights: Two numbers.
        keys: ``(m, 2)`` uint32.
    """
    h, size = images.shape[1], images.shape[2]
    for j in range(images.shape[0]):
        a, b = keys[j, 0], keys[j, 1]
        texture = textures[_below(textures.shape[0], 0, a, b)]
        first, height, width = texture[0], texture[1], texture[2]
        top, left = _below(texture[3], 1, a, b), 3 * _below(texture[4], 2, a, b)
        for y in range(h):
            row = texels[first + (top + y) % height * 3 * width :][: 3 * width]
            done, at = 0, left
            while done < size:
                run = min(size - done, 3 * width - at)
                _blend_run(images[j, y, done:], row[at : at + run], weights, out[j, y, done:])
                done, at = done + run, 0


@njit
def _blend_run(values: Any, texels: Any, weights: Any, out: Any) -> None:
    own, other = weights
    for i in range(texels.shape[0]):
        mixed = own * np.float64(values[i]) + other * np.float64(texels[i])
        out[i] = np.uint8(np.int32(min(mixed, _WHITE)))
