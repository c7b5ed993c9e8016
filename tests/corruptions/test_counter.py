"""Random numbers from a counter: uniform, without memory, and not alike for keys that are alike."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import stats

from shiftcal.corruptions._kernels.counter_kernels import U, fill_words, unit, word
from shiftcal.corruptions._keys import stream_keys

# Nothing here is random from run to run. Of the few hundred probabilities below, a good generator
# would have one under this with a chance of less than a thousandth.
LEAST = 1e-6
# The largest of 1,024 normal deviates exceeds this with a probability of 7e-6.
LARGEST = 5.8

KEYS = [(0, 0), (1, 0), (0, 1), (0xFFFFFFFF, 0xFFFFFFFF), (0x12345678, 0x9ABCDEF0)]
MASK = 0xFFFFFFFF


def words(n, a, b, first=0):
    out = np.empty(n, np.uint32)
    fill_words(out, U(first), U(a), U(b))
    return out


def bits(numbers):
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
    return np.abs(bits(one).T @ bits(other)).max() / np.sqrt(len(one))


@njit
def each_word(counters, a, b):
    out = np.empty_like(counters)
    for i in range(len(out)):
        out[i] = word(counters[i], a[i], b[i])
    return out


@njit
def units(n, a, b):
    out = np.empty(n, np.float32)
    for i in range(n):
        out[i] = unit(U(i), a, b)
    return out


def plain_word(i, a, b):
    """The same arithmetic in whole numbers of any size."""
    x = (i + a) & MASK
    x = (x ^ x >> 16) * 0x7FEB352D & MASK
    x = (x ^ x >> 15) * 0x846CA68B & MASK
    x = ((x ^ x >> 16 ^ b) + a) & MASK
    x = (x ^ x >> 17) * 0xED5AD4BB & MASK
    x = (x ^ x >> 11) * 0xAC4C1B51 & MASK
    x = (x ^ x >> 15) * 0x31848BAB & MASK
    return x ^ x >> 14


@pytest.mark.parametrize(("a", "b"), KEYS)
def test_the_compiled_arithmetic_has_32_bits_at_every_step(a, b):
    for first in (0, 0xFFFFFFF0):
        expected = [plain_word((first + i) & MASK, a, b) for i in range(40)]
        np.testing.assert_array_equal(words(40, a, b, first), np.array(expected, np.uint32))


def test_a_number_does_not_depend_on_where_the_reading_begins():
    np.testing.assert_array_equal(words(100, 3, 5)[37:], words(63, 3, 5, first=37))


@pytest.mark.parametrize(("a", "b"), KEYS)
def test_every_byte_is_uniform(a, b):
    numbers = words(1 << 18, a, b).view(np.uint8).reshape(-1, 4)
    for position in range(4):
        assert chi_square(np.bincount(numbers[:, position], minlength=256)) > LEAST


@pytest.mark.parametrize("half", [0, 1])
def test_both_halves_of_16_bits_are_uniform(half):
    numbers = words(1 << 21, 11, 22).view(np.uint16)[half::2]
    assert chi_square(np.bincount(numbers, minlength=1 << 16)) > LEAST


@pytest.mark.parametrize(("a", "b"), KEYS)
def test_every_bit_is_as_often_set_as_not(a, b):
    n = 1 << 18
    assert np.abs(bits(words(n, a, b)).sum(axis=0)).max() / np.sqrt(n) < LARGEST


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 96, 1024, 1536, 1 << 16])
def test_numbers_at_a_distance_have_nothing_to_do_with_one_another(lag):
    n = 1 << 20
    numbers = words(n + lag, 7, 99)
    early, late = numbers[:n], numbers[lag:]
    assert correlations(early[: 1 << 17], late[: 1 << 17]) < LARGEST
    for shift in (0, 8, 24):
        pairs = pair_counts((early >> shift) & 255, (late >> shift) & 255)
        assert chi_square(pairs) > LEAST


def test_the_bytes_of_a_number_have_nothing_to_do_with_one_another():
    numbers = words(1 << 20, 5, 6).view(np.uint8).reshape(-1, 4)
    for one, other in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
        assert chi_square(pair_counts(numbers[:, one], numbers[:, other])) > LEAST


def test_runs_of_equal_bits_are_as_long_as_chance_makes_them():
    stream = np.unpackbits(words(1 << 16, 1, 2).view(np.uint8), bitorder="little")
    lengths = np.diff(np.flatnonzero(np.diff(stream)))
    counts = np.bincount(np.minimum(lengths, 16), minlength=17)[1:]
    shares = np.append(0.5 ** np.arange(1, 16), 0.5**15)
    assert stats.chisquare(counts, shares * counts.sum()).pvalue > LEAST


@pytest.mark.parametrize("index", [0, 1, 255, 999_999])
def test_neighbouring_images_have_nothing_in_common(index):
    keys = stream_keys(
        seed=0, corruption="fog", severity=3, indices=np.array([index, index + 1], np.int64)
    )
    one, other = (words(1 << 17, *key) for key in keys)
    assert correlations(one, other) < LARGEST
    assert chi_square(pair_counts(one & 255, other & 255)) > LEAST
    assert chi_square(pair_counts(one >> 24, other >> 24)) > LEAST


@pytest.mark.parametrize("counter", [0, 1, 1 << 31])
def test_the_same_number_of_many_images_is_a_random_sequence(counter):
    keys = stream_keys(
        seed=1, corruption="fog", severity=1, indices=np.arange(1 << 14, dtype=np.int64)
    )
    numbers = np.concatenate([words(1, a, b, first=counter) for a, b in keys])
    for position in range(4):
        byte = numbers.view(np.uint8).reshape(-1, 4)[:, position]
        assert chi_square(np.bincount(byte, minlength=256)) > LEAST
    assert correlations(numbers[:-1], numbers[1:]) < LARGEST


@pytest.mark.parametrize("step", [1, 2, 3, 255, 1 << 16, 1 << 31])
@pytest.mark.parametrize("half", [0, 1])
def test_keys_that_differ_a_little_in_one_half_give_streams_that_have_nothing_in_common(half, step):
    n = 1 << 17
    key = [0x3C6EF372, 0xA54FF53A]
    near = list(key)
    near[half] = (near[half] + step) & MASK
    one, other = words(n, *key), words(n, *near)
    assert correlations(one, other) < LARGEST
    assert chi_square(pair_counts(one >> 24, other >> 24)) > LEAST
    # Nor is the one the other, a few numbers ahead.
    for ahead in (step, n - step):
        if 0 < ahead < n // 2:
            assert correlations(one[ahead:], other[:-ahead]) < LARGEST
            assert correlations(one[:-ahead], other[ahead:]) < LARGEST
            assert not (one[ahead:] == other[:-ahead]).any()


def test_a_bit_of_counter_or_key_turns_over_half_of_the_bits():
    n = 1 << 14
    rng = np.random.default_rng(5)
    given = rng.integers(0, 1 << 32, (3, n), dtype=np.uint32)
    before = each_word(given[0], given[1], given[2])
    for part in range(3):
        for bit in range(32):
            turned = given.copy()
            turned[part] ^= np.uint32(1 << bit)
            changed = bits(before ^ each_word(turned[0], turned[1], turned[2])).sum(axis=0)
            assert np.abs(changed).max() / np.sqrt(n) < LARGEST, (part, bit)


def test_a_unit_is_a_multiple_of_two_to_the_minus_24_below_one():
    found = units(1 << 18, U(8), U(9))
    assert found.min() >= 0
    assert found.max() < 1
    np.testing.assert_array_equal(found * 2.0**24, words(1 << 18, 8, 9) >> 8)
    assert stats.kstest(found.astype(np.float64), "uniform").pvalue > LEAST
