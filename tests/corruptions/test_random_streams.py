"""The keys of the images and the numbers drawn from them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import stats

from shiftcal.corruptions.corruption import stream_keys
from shiftcal.corruptions.kernels.random_kernels import U, fill_words

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


def bits_of_keys(numbers):
    unpacked = np.unpackbits(numbers.view(np.uint8), bitorder="little").reshape(-1, 64)
    return unpacked.astype(np.float32) * 2 - 1


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


@pytest.mark.parametrize("step", [1, 256])
def test_keys_of_neighbours_have_nothing_in_common(step):
    n = 1 << 15
    numbers = bits_of_keys(together(keys(n + step)))
    # The largest of 64 and of 4,096 normal deviates exceeds 6 with a probability below 1e-5.
    assert np.abs(numbers.sum(axis=0)).max() / np.sqrt(len(numbers)) < 6
    assert np.abs(numbers[:n].T @ numbers[step:]).max() / np.sqrt(n) < 6


# ---- counter


# Nothing here is random from run to run. Of the few hundred probabilities below, a good generator
# would have one under this with a chance of less than a thousandth.
LEAST = 1e-6
# The largest of 1,024 normal deviates exceeds this with a probability of 7e-6.
LARGEST = 5.8
KEYS = [(0, 0), (1, 0), (0, 1), (0xFFFFFFFF, 0xFFFFFFFF), (0x12345678, 0x9ABCDEF0)]
COUNTER_MASK = 0xFFFFFFFF


def words(n, a, b, first=0):
    out = np.empty(n, np.uint32)
    fill_words(out, U(first), U(a), U(b))
    return out


def bits_of_counter(numbers):
    """(n, 32) of -1 and 1, the lowest bit first."""
    unpacked = np.unpackbits(numbers.view(np.uint8), bitorder="little").reshape(-1, 32)
    return unpacked.astype(np.float32) * 2 - 1


def chi_square(counts):
    return stats.chisquare(counts.ravel()).pvalue


def pair_counts(first, second):
    joint = first.astype(np.int64) << 8 | second
    return np.bincount(joint, minlength=1 << 16)


def correlations(one, other):
    """The largest correlation between any bit of one and any bit of the other, in deviations."""
    return np.abs(bits_of_counter(one).T @ bits_of_counter(other)).max() / np.sqrt(len(one))


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
def test_the_compiled_arithmetic_has_32_bits_at_every_step(a, b):
    for first in (0, 0xFFFFFFF0):
        expected = [plain_word((first + i) & COUNTER_MASK, a, b) for i in range(40)]
        np.testing.assert_array_equal(words(40, a, b, first), np.array(expected, np.uint32))


@pytest.mark.parametrize(("a", "b"), KEYS)
def test_every_byte_is_uniform(a, b):
    numbers = words(1 << 18, a, b).view(np.uint8).reshape(-1, 4)
    for position in range(4):
        assert chi_square(np.bincount(numbers[:, position], minlength=256)) > LEAST


@pytest.mark.parametrize("lag", [1, 96, 1536])
def test_numbers_at_a_distance_have_nothing_to_do_with_one_another(lag):
    n = 1 << 18
    numbers = words(n + lag, 7, 99)
    early, late = numbers[:n], numbers[lag:]
    assert correlations(early[: 1 << 17], late[: 1 << 17]) < LARGEST
    for shift in (0, 8, 24):
        pairs = pair_counts((early >> shift) & 255, (late >> shift) & 255)
        assert chi_square(pairs) > LEAST


@pytest.mark.parametrize(("half", "step"), [(0, 1), (1, 1), (0, 255), (1, 1 << 31)])
def test_keys_that_differ_a_little_in_one_half_give_streams_that_have_nothing_in_common(half, step):
    n = 1 << 17
    key = [0x3C6EF372, 0xA54FF53A]
    near = list(key)
    near[half] = (near[half] + step) & COUNTER_MASK
    one, other = words(n, *key), words(n, *near)
    assert correlations(one, other) < LARGEST
    assert chi_square(pair_counts(one >> 24, other >> 24)) > LEAST
    # Nor is the one the other, a few numbers ahead.
    for ahead in (step, n - step):
        if 0 < ahead < n // 2:
            assert correlations(one[ahead:], other[:-ahead]) < LARGEST
            assert correlations(one[:-ahead], other[ahead:]) < LARGEST
            assert not (one[ahead:] == other[:-ahead]).any()
