"""Additive noise on every value. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.counter_kernels import U, word
from shiftcal.numerics._jit import compiled

_LOW = U(0xFFFF)
_BLOCK = 1024


@compiled()
def add_noise(images: Any, out: Any, steps: Any, keys: Any) -> None:
    """Add ``steps[16 random bits]`` to every value, and stop at 0 and 255.

    Args:
        images: ``(m, s)`` uint8.
        out: ``(m, s)`` uint8.
        steps: ``(65536,)`` int16, all equally likely.
        keys: ``(m, 2)`` uint32.
    """
    m, size = images.shape
    words = np.empty(_BLOCK, np.uint32)
    for j in range(m):
        a, b = keys[j, 0], keys[j, 1]
        for start in range(0, size, 2 * _BLOCK):
            pairs = min(_BLOCK, (size - start + 1) // 2)
            for i in range(pairs):
                words[i] = word(U(U(start // 2) + U(i)), a, b)
            for i in range(pairs):
                p = start + 2 * i
                value = images[j, p] + steps[words[i] & _LOW]
                out[j, p] = min(max(value, 0), 255)
                if p + 1 < size:
                    value = images[j, p + 1] + steps[words[i] >> U(16)]
                    out[j, p + 1] = min(max(value, 0), 255)
