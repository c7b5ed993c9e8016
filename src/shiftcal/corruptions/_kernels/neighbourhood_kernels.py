"""Symmetric kernels of three by three pixels, by the differences from the centre.

``x + edge (sum of the 4 nearest - 4 x) + corner (sum of the 4 diagonal ones - 4 x)``: where a
kernel is all but a single point, the sign of a very small difference decides between two grey
levels, and here it is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.inner_kernels import inner

I16, I32 = np.int16, np.int32
SHIFT = I32(22)  # bits of a weight behind the point: a sum of differences still fits 32 bits
_SLACK = I32(1 << 10)  # 2**-12 of a level: more than the weights' rounding can take from a sum


@inner()
def frame(plane: Any, image: Any, rows: Any, columns: Any) -> None:
    """Copy an image with one more pixel on each side.

    Args:
        plane: ``(h + 2, 3 w + 6)`` uint8, the result.
        image: ``(h, 3 w)`` uint8.
        rows: ``(h + 2,)`` row indices.
        columns: ``(w + 2,)`` column indices.
    """
    width = image.shape[1]
    left, right = 3 * columns[0], 3 * columns[-1]
    for y in range(len(rows)):
        line, x = plane[y], image[rows[y]]
        inner = line[3 : 3 + width]
        for i in range(width):
            inner[i] = x[i]
        for c in range(3):
            line[c] = x[left + c]
            line[3 + width + c] = x[right + c]


@inner()
def weigh_neighbours(image: Any, plane: Any, edge: Any, corner: Any, work: Any) -> None:
    """Apply a kernel of sum 1, and cut the result to whole grey levels.

    Args:
        image: ``(h, 3 w)`` uint8, the result.
        plane: ``(h + 2, 3 w + 6)`` uint8.
        edge: The weight of a nearest neighbour in units of ``2**-SHIFT``, int32.
        corner: That of a diagonal one.
        work: ``(3, n)`` int16 to work in, with room for at least a row of the plane.
    """
    height, width = image.shape
    padded = plane.shape[1]
    flat = plane.reshape(plane.size)
    group = max(1, work.shape[1] // padded)
    for top in range(0, height, group):
        rows = min(group, height - top)
        n = rows * padded - 6
        near, far, result = work[0, :n], work[1, :n], work[2, :n]
        part = flat[top * padded :]
        _differences(near, far, part, padded)
        _weigh(result, near, far, edge, corner)
        for y in range(rows):
            out, line = image[top + y], result[y * padded : y * padded + width]
            x = plane[top + y + 1, 3 : 3 + width]
            for i in range(width):
                out[i] = np.uint8(x[i] + line[i])


@inner()
def _differences(near: Any, far: Any, plane: Any, padded: Any) -> None:
    n = len(near)
    above, line = plane[: n + 6], plane[padded : padded + n + 6]
    below = plane[2 * padded : 2 * padded + n + 6]
    for i in range(n):
        four = I16(4 * I16(line[i + 3]))
        near[i] = I16(I16(above[i + 3]) + line[i] + line[i + 6] + below[i + 3] - four)
        far[i] = I16(I16(above[i]) + above[i + 6] + below[i] + below[i + 6] - four)


@inner()
def _weigh(result: Any, near: Any, far: Any, edge: Any, corner: Any) -> None:
    for i in range(len(result)):
        change = I32(I32(I32(near[i]) * edge) + I32(I32(far[i]) * corner) + _SLACK)
        result[i] = I16(I32(change) >> SHIFT)
