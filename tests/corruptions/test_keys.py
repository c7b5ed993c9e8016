"""The keys of the images' random streams."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest

from shiftcal.corruptions._keys import stream_keys

MASK = (1 << 64) - 1


def keys(n=4, *, seed=0, corruption="fog", severity=1, first=0):
    indices = np.arange(first, first + n, dtype=np.int64)
    return stream_keys(seed=seed, corruption=corruption, severity=severity, indices=indices)


def together(pairs):
    return pairs[:, 0].astype(np.uint64) | pairs[:, 1].astype(np.uint64) << np.uint64(32)


def plain_key(seed, corruption, severity, index):
    """The same in whole numbers of any size."""
    digest = hashlib.blake2b(f"{corruption}|{severity}|{seed}".encode(), digest_size=8).digest()
    z = int.from_bytes(digest, "little") + index * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def bits(numbers):
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


def test_an_image_has_its_key_whatever_comes_with_it():
    whole = keys(100)
    np.testing.assert_array_equal(keys(10, first=37), whole[37:47])
    shuffled = np.random.default_rng(0).permutation(100)
    again = stream_keys(seed=0, corruption="fog", severity=1, indices=shuffled)
    np.testing.assert_array_equal(again, whole[shuffled])


def test_no_two_images_share_a_key():
    assert len(np.unique(together(keys(1_000_000)))) == 1_000_000


def test_seed_corruption_and_severity_each_change_every_key():
    sets = [
        together(keys(2000, seed=seed, corruption=corruption, severity=severity))
        for seed, corruption, severity in itertools.product(
            (0, 1, 2, 10, -1), ("fog", "frost", "snow"), (1, 2, 3, 4, 5)
        )
    ]
    assert len(np.unique(np.concatenate(sets))) == len(sets) * 2000


def test_digits_do_not_run_together():
    # Severity 1 of seed 11 and severity 11 of seed 1, or a name that ends in a digit.
    one, other = keys(1, seed=11, severity=1), keys(1, seed=1, severity=11)
    assert together(one) != together(other)
    one = keys(1, corruption="mine|1", severity=2, seed=3)
    other = keys(1, corruption="mine", severity=1, seed=23)
    assert together(one) != together(other)


@pytest.mark.parametrize("step", [1, 2, 3, 256, 4096])
def test_keys_of_neighbours_have_nothing_in_common(step):
    n = 1 << 15
    numbers = bits(together(keys(n + step)))
    # The largest of 64 and of 4,096 normal deviates exceeds 6 with a probability below 1e-5.
    assert np.abs(numbers.sum(axis=0)).max() / np.sqrt(len(numbers)) < 6
    assert np.abs(numbers[:n].T @ numbers[step:]).max() / np.sqrt(n) < 6


@pytest.mark.parametrize("change", ["seed", "severity"])
def test_keys_of_neighbouring_seeds_and_severities_have_nothing_in_common(change):
    n = 1 << 15
    one, other = (bits(together(keys(n, **{change: value}))) for value in (1, 2))
    assert np.abs(one.T @ other).max() / np.sqrt(n) < 6
