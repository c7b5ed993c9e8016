"""The random numbers of images, word by word, for oracles that are to use the same ones."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from shiftcal.corruptions.corruption import stream_keys

TABLES = ("cifar", "tiny-imagenet", "imagenet")


def random_words(count, name, severity, *, index=0, seed=0, first=0):
    """The numbers ``first``, ``first + 1``, ... of an image's stream."""
    indices = np.array([index], np.int64)
    (key,) = stream_keys(seed=seed, corruption=name, severity=severity, indices=indices)
    return words(key, first, count)


def normal_deviates(count, name, severity, *, index=0, seed=0):
    """Normal deviates of the values of an image, from 16 bits each and 12 more in the tails.

    The 16 bits are sign and cell; a cell is one of 2**15 of equal probability of the absolute
    value, and the deviate its median. The 32 outermost are together cut into 2**12.
    """
    halves = random_words((count + 1) // 2, name, severity, index=index, seed=seed)
    halves = np.stack([halves & 0xFFFF, halves >> 16], axis=1).ravel()[:count].astype(np.int64)
    beyond = (2**15 - (halves & 0x7FFF) - 0.5) / 2**16
    more = random_words(count, name, severity, index=index, seed=seed, first=1 << 31) >> 20
    tail = (2**12 - more - 0.5) / 2**12 * 2**5 / 2**16
    size = -ndtri(np.where(beyond < 2**5 / 2**16, tail, beyond))
    return np.where(halves < 2**15, size, -size)


def largest_correlation(noise):
    """Between neighbours in a row, a column and the channels, and two apart, in deviations.

    Args:
        noise: ``(n, h, w, 3)``, without its mean.
    """
    shifts = ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2), (0, 1))
    found = []
    for axis, step in shifts:
        early = np.take(noise, range(noise.shape[axis] - step), axis=axis)
        late = np.take(noise, range(step, noise.shape[axis]), axis=axis)
        product = early * late
        found.append(abs(product.mean()) / product.std() * np.sqrt(product.size))
    return max(found)


def image_keys(name, severity, n, *, seed=0):
    """The keys of images 0 to n - 1: (n, 2)."""
    return stream_keys(seed=seed, corruption=name, severity=severity, indices=np.arange(n))


def words(key, first, count):
    """Words ``first``, ``first + 1``, ... of the stream: uint32."""
    # Arrays of unsigned numbers wrap around silently, which is intended.
    x = np.arange(count, dtype=np.uint32) + np.uint32(first) + key[:1]
    x = (x ^ x >> 16) * np.uint32(0x7FEB352D)
    x = (x ^ x >> 15) * np.uint32(0x846CA68B)
    x = (x ^ x >> 16 ^ key[1]) + key[0]
    x = (x ^ x >> 17) * np.uint32(0xED5AD4BB)
    x = (x ^ x >> 11) * np.uint32(0xAC4C1B51)
    x = (x ^ x >> 15) * np.uint32(0x31848BAB)
    return x ^ x >> 14


def symmetric_halves(values):
    """Two numbers in (-1, 1) from the low and the high 16 bits of every word, float64."""
    low, high = values & np.uint32(0xFFFF), values >> np.uint32(16)
    return tuple((2 * half.astype(np.float64) + 1) / 65536 - 1 for half in (low, high))
