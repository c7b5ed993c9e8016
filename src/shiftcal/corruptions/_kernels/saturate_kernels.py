"""The saturation of HSV changed, in RGB. Importing this file imports numba: only in functions."""

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
def change_saturation(images: Any, out: Any, factor: Any, extra: Any) -> None:
    """Move every channel away from the largest, or towards it, in proportion to the distance.

    Args:
        images: ``(3 s,)`` uint8, the channels of a pixel next to one another.
        out: ``(3 s,)`` uint8.
        factor: Of the saturation, float32.
        extra: Saturation added after that, float32.
    """
    for pixel in range(images.shape[0] // 3):
        # Unsigned places in steps of three are what the compiler takes many pixels at a time of.
        red, green, blue = _places(pixel)
        r, g, b = I32(images[red]), I32(images[green]), I32(images[blue])
        value = max(r, g, b)
        spread = I32(value - min(r, g, b))
        # Grey has the hue of red, and so green and blue are what moves.
        grey = I32(spread == I32(0))
        full = F(value)
        moved = F(F(factor * F(spread)) + F(extra * full))
        moved = moved if moved < full else full
        scale = F(moved / F(I32(spread + grey)))
        top = F(full + _MARGIN)
        out[red] = np.uint8(I32(F(top - F(F(I32(value - r)) * scale))))
        out[green] = np.uint8(I32(F(top - F(F(I32(I32(value - g) + grey)) * scale))))
        out[blue] = np.uint8(I32(F(top - F(F(I32(I32(value - b) + grey)) * scale))))


@njit(inline="always")
def _places(pixel: Any) -> Any:
    first = U64(pixel) * U64(3)
    return first, first + U64(1), first + U64(2)
