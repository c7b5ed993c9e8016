"""The value of HSV raised, in RGB. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.numerics._jit import compiled

F = np.float32
I32 = np.int32
U64 = np.uint64
# Rounding must not take a level from what is a whole number.
_MARGIN = F(1e-4)


@compiled(error_model="numpy")
def raise_value(images: Any, out: Any, rise: Any) -> None:
    """Scale every pixel so that its largest channel rises by ``rise``, to 255 at the most.

    Args:
        images: ``(3 s,)`` uint8, the channels of a pixel next to one another.
        out: ``(3 s,)`` uint8.
        rise: Grey levels, float32.
    """
    for pixel in range(images.shape[0] // 3):
        # Unsigned places in steps of three are what the compiler takes many pixels at a time of.
        red, green, blue = _places(pixel)
        r, g, b = I32(images[red]), I32(images[green]), I32(images[blue])
        value = max(r, g, b)
        # Black has no channel that could be scaled: it becomes grey.
        black = I32(value == I32(0))
        raised = F(F(value) + rise)
        raised = raised if raised < F(255) else F(255)
        scale = F(raised / F(I32(value + black)))
        r, g, b = I32(r + black), I32(g + black), I32(b + black)
        out[red] = np.uint8(I32(F(F(F(r) * scale) + _MARGIN)))
        out[green] = np.uint8(I32(F(F(F(g) * scale) + _MARGIN)))
        out[blue] = np.uint8(I32(F(F(F(b) * scale) + _MARGIN)))


@njit(inline="always")
def _places(pixel: Any) -> Any:
    first = U64(pixel) * U64(3)
    return first, first + U64(1), first + U64(2)
