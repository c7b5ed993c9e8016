"""JPEG there and back. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.jpeg_block_kernels import COLUMNS, code_blocks
from shiftcal.corruptions._kernels.jpeg_colour_kernels import from_planes, to_planes
from shiftcal.numerics._jit import compiled


@compiled()
def round_trip(
    images: Any, out: Any, shape: Any, blocks: Any, half_blocks: Any, tables: Any
) -> None:
    """Images as they are after having been saved and read.

    Args:
        images: ``(m, height, 3 * width)`` uint8.
        out: The same shape, to be written in full.
        shape: Of the planes, see ``jpeg_colour_kernels``.
        blocks: Where the blocks of brightness start in the planes.
        half_blocks: Where those of the colour differences start.
        tables: ``(2, 4, 512)`` int32: quantisation of brightness, and of colour.
    """
    stride, half_stride = shape[2], shape[3]
    planes = np.empty(64 * (blocks.shape[0] + half_blocks.shape[0]), np.uint8)
    rows = np.empty((2, 4 * half_stride), np.uint8)
    sums = np.zeros(2 * half_stride + 2, np.int16)
    samples = np.zeros(8 * COLUMNS, np.uint8)
    a, b = np.empty(8 * COLUMNS, np.int16), np.empty(8 * COLUMNS, np.int16)
    for j in range(images.shape[0]):
        to_planes(images[j], planes, shape, rows)
        code_blocks(planes, blocks, stride, tables[0], samples, a, b)
        code_blocks(planes, half_blocks, 2 * half_stride, tables[1], samples, a, b)
        from_planes(planes, out[j], shape, rows, sums)
