"""Values replaced by random ones. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.counter_kernels import U, fill_words
from shiftcal.numerics._jit import compiled

U64 = np.uint64
_BLOCK = 1024
_BELOW = U(0xFFFFFF)


@compiled(error_model="numpy")
def draw_levels(images: Any, out: Any, table: Any, keys: Any) -> None:
    """Replace every value by one drawn from the alias table of its level.

    Value ``i`` of an image takes the number ``i`` of its stream.

    Args:
        images: ``(m, s)`` uint8.
        out: ``(m, s)`` uint8.
        table: ``(256 * 256,)`` uint32, by level and the first eight bits of the number.
        keys: ``(m, 2)`` uint32.
    """
    m, size = images.shape
    words = np.empty(_BLOCK, np.uint32)
    entries = np.empty(_BLOCK, np.uint32)
    for j in range(m):
        for start in range(0, size, _BLOCK):
            n = min(_BLOCK, size - start)
            fill_words(words[:n], start, keys[j, 0], keys[j, 1])
            values, result = images[j, start : start + n], out[j, start : start + n]
            for i in range(n):
                entries[i] = table[(U64(values[i]) << U64(8)) | U64(words[i] >> U(24))]
            _choose(words, entries, result)


@njit(error_model="numpy")
def _choose(words: Any, entries: Any, result: Any) -> None:
    for i in range(result.shape[0]):
        own = U(U(0) - U(U(words[i] & _BELOW) < U(entries[i] >> U(8))))
        result[i] = np.uint8(U(U(U(words[i] >> U(24)) & own) | U(entries[i] & U(~own))))
