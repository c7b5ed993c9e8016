"""The random stream of an image: a key made of seed, corruption, severity and index."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_STEP = np.uint64(0x9E3779B97F4A7C15)  # odd, so that 2**64 images have 2**64 different keys
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def stream_keys(
    *, seed: int, corruption: str, severity: int, indices: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Two 32-bit words for every image, ``(n, 2)``; nothing else decides its random numbers.

    Seed, name and severity are digested to 64 bits; the index is added in steps of the golden
    ratio and mixed (Steele, Lea and Flood, 2014). Images of one set never share a key.
    """
    text = f"{corruption}|{severity}|{seed}".encode()
    start = np.uint64(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))
    with np.errstate(over="ignore"):
        z = start + indices.astype(np.uint64) * _STEP
        z = (z ^ (z >> np.uint64(30))) * _MIX[0]
        z = (z ^ (z >> np.uint64(27))) * _MIX[1]
        z ^= z >> np.uint64(31)
    low = (z & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return np.stack([low, (z >> np.uint64(32)).astype(np.uint32)], axis=1)
