"""The random stream of an image: a key made of seed, corruption, severity and index."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_STEP = 0x9E3779B97F4A7C15  # odd, so that 2**64 images have 2**64 different keys
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_ALL_64 = (1 << 64) - 1
_FEW = 8  # images for which numpy takes longer to start than Python takes in all


def stream_keys(
    *, seed: int, corruption: str, severity: int, indices: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Two 32-bit words for every image, ``(n, 2)``; nothing else decides its random numbers.

    Seed, name and severity are digested to 64 bits; the index is added in steps of the golden
    ratio and mixed (Steele, Lea and Flood, 2014). Images of one set never share a key.
    """
    text = f"{corruption}|{severity}|{seed}".encode()
    start = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    if len(indices) <= _FEW:
        keys = [_mixed((start + int(index) * _STEP) & _ALL_64) for index in indices]
        return np.array([(z & 0xFFFFFFFF, z >> 32) for z in keys], np.uint32).reshape(-1, 2)
    # Arrays of unsigned numbers wrap around without a word, which is meant.
    z = mixed(np.uint64(start) + indices.astype(np.uint64) * np.uint64(_STEP))
    low = (z & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return np.stack([low, (z >> np.uint64(32)).astype(np.uint32)], axis=1)


def key_bits(keys: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """The two words of every key ``(n, 2)`` as one number, ``(n,)``."""
    return keys[:, 0].astype(np.uint64) | keys[:, 1].astype(np.uint64) << np.uint64(32)


def uniforms(bits: NDArray[np.uint64], number: int) -> NDArray[np.float64]:
    """The draw of this number from every stream: strictly between 0 and 1, ``(n,)``.

    It is draw ``number`` of SplitMix64 seeded with the key (Steele, Lea and Flood, 2014), so any
    one can be had without those before it.

    Args:
        bits: ``(n,)``, from :func:`key_bits`.
        number: From 0 on.
    """
    step = np.uint64((number + 1) * _STEP & _ALL_64)
    return ((mixed(bits + step) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX[0])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX[1])
    return z ^ (z >> np.uint64(31))


def _mixed(z: int) -> int:
    z = ((z ^ (z >> 30)) * _MIX[0]) & _ALL_64
    z = ((z ^ (z >> 27)) * _MIX[1]) & _ALL_64
    return z ^ (z >> 31)
