"""Additive noise on every value. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.normal_kernels import UH, H, fill_halves, look_up, tail_cell
from shiftcal.numerics._jit import compiled

_BLOCK = 2048


@compiled(error_model="numpy")
def add_noise(images: Any, out: Any, steps: Any, tail: Any, keys: Any) -> None:
    """Add a whole number of levels to every value, and stop at 0 and 255.

    Value ``i`` of an image takes 16 bits of the number ``i // 2`` of its stream, the lower half
    first, and if they fall into the tail the number ``2**31 + i``. A step of ``k`` levels or more
    upwards is as likely as one of ``k + 1`` or more downwards: both are ``floor`` of the noise.

    Args:
        images: ``(m, s)`` uint8.
        out: ``(m, s)`` uint8.
        steps: ``(3008,)`` uint16, compressed.
        tail: ``(4096,)`` int16.
        keys: ``(m, 2)`` uint32.
    """
    m, size = images.shape
    words = np.empty(_BLOCK // 2, np.uint32)
    halves = words.view(np.uint16)
    found = np.empty(_BLOCK, np.uint16)
    rare = np.empty(_BLOCK, np.uint16)
    for j in range(m):
        a, b = keys[j, 0], keys[j, 1]
        for start in range(0, size, _BLOCK):
            n = min(_BLOCK, size - start)
            fill_halves(words[: (n + 1) // 2], start // 2, a, b)
            count = look_up(steps, halves[:n], found[:n], rare[:n])
            values, result = images[j, start : start + n], out[j, start : start + n]
            _add(values, result, found, halves)
            for r in range(count):
                i = rare[r]
                step = tail[tail_cell(start + i, a, b)]
                result[i] = _moved(values[i], step, halves[i])


@njit(error_model="numpy")
def _add(values: Any, result: Any, found: Any, halves: Any) -> None:
    for i in range(values.shape[0]):
        step = H(UH(found[i] + UH(halves[i] & UH(15))) >> UH(4))
        result[i] = _moved(values[i], step, halves[i])


@njit(inline="always")
def _moved(value: Any, step: Any, half: Any) -> Any:
    # floor(-y) is ~floor(y), and that is floor(y) with all bits turned over.
    signed = H(step ^ H(-H(half >> UH(15))))
    return np.uint8(min(max(H(H(value) + signed), H(0)), H(255)))
