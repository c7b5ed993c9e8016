"""The random numbers of an image, word by word, for oracles that are to use the same ones."""

from __future__ import annotations

import numpy as np

from shiftcal.corruptions.corruption import stream_keys
from shiftcal.corruptions.kernels.random_kernels import U, fill_words


def image_keys(name, severity, n, *, seed=0):
    """The keys of images 0 to n - 1: (n, 2)."""
    return stream_keys(seed=seed, corruption=name, severity=severity, indices=np.arange(n))


def words(key, first, count):
    """Words ``first``, ``first + 1``, ... of the stream: uint32."""
    out = np.empty(count, np.uint32)
    fill_words(out, U(first), key[0], key[1])
    return out


def symmetric_halves(values):
    """Two numbers in (-1, 1) from the low and the high 16 bits of every word, float64."""
    low, high = values & np.uint32(0xFFFF), values >> np.uint32(16)
    return tuple((2 * half.astype(np.float64) + 1) / 65536 - 1 for half in (low, high))
