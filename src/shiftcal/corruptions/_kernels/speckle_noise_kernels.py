"""Noise in proportion to the value. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.counter_kernels import U
from shiftcal.corruptions._kernels.normal_cells import SLOPE_BITS, UNIT
from shiftcal.corruptions._kernels.normal_kernels import UH, fill_halves, look_up, tail_cell
from shiftcal.numerics._jit import compiled

F = np.float32
I32 = np.int32
_BLOCK = 2048
_UNIT = F(UNIT)
_SLOPE = U((1 << SLOPE_BITS) - 1)
_START = U(SLOPE_BITS)


@compiled(error_model="numpy")
def scale_noise(images: Any, out: Any, spread: Any, table: Any, tail: Any, keys: Any) -> None:
    """``floor(x + x * spread * z)`` for every value, stopped at 0 and 255.

    Value ``i`` of an image takes 16 bits of the number ``i // 2`` of its stream, the lower half
    first, and if they fall into the tail the number ``2**31 + i``.

    Args:
        images: ``(m, s)`` uint8.
        out: ``(m, s)`` uint8.
        spread: Standard deviation of the factor, float32.
        table: ``(3008,)`` uint32, deviates with slopes.
        tail: ``(4096,)`` float32.
        keys: ``(m, 2)`` uint32.
    """
    m, size = images.shape
    words = np.empty(_BLOCK // 2, np.uint32)
    halves = words.view(np.uint16)
    found = np.empty(_BLOCK, np.uint32)
    rare = np.empty(_BLOCK, np.uint16)
    for j in range(m):
        a, b = keys[j, 0], keys[j, 1]
        for start in range(0, size, _BLOCK):
            n = min(_BLOCK, size - start)
            fill_halves(words[: (n + 1) // 2], start // 2, a, b)
            count = look_up(table, halves[:n], found[:n], rare[:n])
            values, result = images[j, start : start + n], out[j, start : start + n]
            _scale(values, result, spread, found, halves)
            for r in range(count):
                i = rare[r]
                deviate = tail[tail_cell(start + i, a, b)]
                result[i] = _scaled(values[i], spread, deviate, halves[i])


@njit(error_model="numpy")
def _scale(values: Any, result: Any, spread: Any, found: Any, halves: Any) -> None:
    for i in range(values.shape[0]):
        entry = found[i]
        along = U(U(entry & _SLOPE) * U(halves[i] & UH(15))) >> U(4)
        deviate = F(F(I32(U(U(entry >> _START) + U(along)))) * _UNIT)
        result[i] = _scaled(values[i], spread, deviate, halves[i])


@njit(inline="always")
def _scaled(value: Any, spread: Any, deviate: Any, half: Any) -> Any:
    x = F(value)
    sign = F(I32(I32(1) - I32(UH(half >> UH(14)) & UH(2))))
    # As whole numbers, because a choice between floats must think of what is not a number.
    level = I32(np.floor(F(x + F(F(F(x * spread) * deviate) * sign))))
    return np.uint8(min(max(level, I32(0)), I32(255)))
