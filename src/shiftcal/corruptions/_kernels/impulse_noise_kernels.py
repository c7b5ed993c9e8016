"""Salt and pepper. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.counter_kernels import U, word
from shiftcal.numerics._jit import compiled


@compiled(error_model="numpy")
def salt_and_pepper(images: Any, out: Any, threshold: Any, keys: Any) -> None:
    """Replace a value by 0 or 255 where its random number is below the threshold.

    Value ``i`` of an image takes the number ``i`` of its stream; the last bit says which of the
    two it becomes, and an even threshold makes both equally likely.

    Args:
        images: ``(m, s)`` uint8.
        out: ``(m, s)`` uint8.
        threshold: uint32, even.
        keys: ``(m, 2)`` uint32.
    """
    m, size = images.shape
    for j in range(m):
        a, b = keys[j, 0], keys[j, 1]
        values, result = images[j], out[j]
        for i in range(size):
            random = word(U(i), a, b)
            # Masks, because a choice keeps the compiler from taking eight at a time.
            kept = U(U(0) - U(random >= threshold))
            salt = U(U(0) - U(random & U(1)))
            result[i] = np.uint8(U(U(U(values[i]) & kept) | U(salt & U(~kept))))
