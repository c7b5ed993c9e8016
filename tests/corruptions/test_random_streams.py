"""The keys of the images and the numbers drawn from them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from random_fields import words

from shiftcal import _kernels
from shiftcal.corruptions.corruption import stream_keys

# ---- keys


KEYS_MASK = (1 << 64) - 1


def keys(n=4, *, seed=0, corruption="fog", severity=1, first=0):
    indices = np.arange(first, first + n, dtype=np.int64)
    return stream_keys(seed=seed, corruption=corruption, severity=severity, indices=indices)


def together(pairs):
    return pairs[:, 0].astype(np.uint64) | pairs[:, 1].astype(np.uint64) << np.uint64(32)


def plain_key(seed, corruption, severity, index):
    """The same in whole numbers of any size."""
    digest = hashlib.blake2b(f"{corruption}|{severity}|{seed}".encode(), digest_size=8).digest()
    z = int.from_bytes(digest, "little") + index * 0x9E3779B97F4A7C15 & KEYS_MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & KEYS_MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & KEYS_MASK
    return z ^ z >> 31


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63, 10**30])
@pytest.mark.parametrize("first", [0, 123_456_789_012])
def test_keys_are_those_of_plain_arithmetic(seed, first):
    found = keys(5, seed=seed, severity=4, first=first)
    assert found.shape == (5, 2)
    assert found.dtype == np.uint32
    expected = [plain_key(seed, "fog", 4, first + i) for i in range(5)]
    assert together(found).tolist() == expected


def test_keys_stay_what_they_are_from_version_to_version():
    # Written down once: whoever changes them changes every image made with a seed.
    found = keys(2, seed=0, corruption="gaussian_noise", severity=3)
    assert found.tolist() == [[480519716, 2410608553], [4278112864, 3407457340]]


# ---- counter


KEYS = [(0, 0), (1, 0), (0, 1), (0xFFFFFFFF, 0xFFFFFFFF), (0x12345678, 0x9ABCDEF0)]
COUNTER_MASK = 0xFFFFFFFF


def plain_word(i, a, b):
    """The same arithmetic in whole numbers of any size."""
    x = (i + a) & COUNTER_MASK
    x = (x ^ x >> 16) * 0x7FEB352D & COUNTER_MASK
    x = (x ^ x >> 15) * 0x846CA68B & COUNTER_MASK
    x = ((x ^ x >> 16 ^ b) + a) & COUNTER_MASK
    x = (x ^ x >> 17) * 0xED5AD4BB & COUNTER_MASK
    x = (x ^ x >> 11) * 0xAC4C1B51 & COUNTER_MASK
    x = (x ^ x >> 15) * 0x31848BAB & COUNTER_MASK
    return x ^ x >> 14


@pytest.mark.parametrize(("a", "b"), KEYS)
def test_the_numbers_of_the_oracles_have_32_bits_at_every_step(a, b):
    for first in (0, 0xFFFFFFF0):
        expected = [plain_word((first + i) & COUNTER_MASK, a, b) for i in range(40)]
        found = words(np.array([a, b], np.uint32), first, 40)
        np.testing.assert_array_equal(found, np.array(expected, np.uint32))


@pytest.mark.parametrize(("a", "b"), KEYS)
def test_the_kernels_draw_these_numbers(a, b):
    # Salt and pepper shows whether a number is below a threshold, and its last bit.
    images = np.full((1, 5, 67, 3), 7, np.uint8)
    out, key = np.empty_like(images), np.array([[a, b]], np.uint32)
    numbers = words(key[0], 0, images.size)
    for bits in range(1, 32):
        _kernels.salt_and_pepper(images, out, 1 << bits, key)
        expected = np.where(numbers < 1 << bits, 255 * (numbers & 1), 7)
        np.testing.assert_array_equal(out.ravel(), expected)
