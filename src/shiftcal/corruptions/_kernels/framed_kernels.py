"""Planes with a frame of two pixels around them. Imports numba: import it in functions.

A plane of ``h`` rows and ``w`` columns is a line of ``(h + 4) (w + 4)`` values. Loops run over all
of it, frames between the rows included, at one go: at 32 pixels a loop for each row would cost
more than the work. What then stands in the frame has no meaning until it is written anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

FRAME = 2
Z = np.uint64  # an unsigned index is not looked at for counting from the end
ONE = Z(1)


def framed_size(height: int, width: int) -> int:
    """How many values a framed plane has."""
    return (height + 2 * FRAME) * (width + 2 * FRAME)


@njit(inline="always")
def span(h: Any, w: Any) -> Any:
    """``(first, count, stride)``: where the pixels begin, how far they reach, a row's length."""
    stride = w + 2 * FRAME
    return Z(FRAME * stride + FRAME), (h - 1) * stride + w, Z(stride)


@njit
def mirror_frame(plane: Any, h: Any, w: Any, step: Any) -> None:
    """Set the pixels next to the border: to the border's (``step`` 0) or to its neighbours' (1)."""
    stride = w + 2 * FRAME
    left, right = FRAME * stride + FRAME, FRAME * stride + FRAME + w - 1
    for _ in range(h):
        plane[left - 1] = plane[left + step]
        plane[right + 1] = plane[right - step]
        left += stride
        right += stride
    top, bottom = FRAME * stride, (FRAME + h - 1) * stride
    for i in range(stride):
        plane[top - stride + i] = plane[top + step * stride + i]
        plane[bottom + stride + i] = plane[bottom - step * stride + i]


@njit
def clear_frame(plane: Any, h: Any, w: Any) -> None:
    """Set the whole frame to 0."""
    stride = w + 2 * FRAME
    for i in range(FRAME * stride):
        plane[i] = 0
        plane[(FRAME + h) * stride + i] = 0
    for y in range(FRAME, FRAME + h):
        for i in range(FRAME):
            plane[y * stride + i] = 0
            plane[(y + 1) * stride - 1 - i] = 0
