"""Random numbers of rows: any one of any stream, and nothing else decides it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shiftcal.corruptions._keys import key_bits, stream_keys, uniforms

# Published with the generator's reference code: the first five numbers from the seed 1234567.
FIRST_FIVE = (
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
)


def streams(n, *, seed=0, corruption="noise", severity=1):
    indices = np.arange(n)
    return key_bits(
        stream_keys(seed=seed, corruption=corruption, severity=severity, indices=indices)
    )


def test_the_draws_are_those_of_splitmix64():
    bits = np.array([1234567], dtype=np.uint64)
    for number, wanted in enumerate(FIRST_FIVE):
        assert uniforms(bits, number)[0] == ((wanted >> 12) + 0.5) / 2**52


def test_a_key_is_its_two_words():
    keys = np.array([[1, 2], [0xFFFFFFFF, 0xFFFFFFFF]], dtype=np.uint32)
    assert key_bits(keys).tolist() == [1 + (2 << 32), 2**64 - 1]


@pytest.mark.parametrize("number", [0, 1, 255])
def test_draws_are_uniform_between_0_and_1(number):
    drawn = uniforms(streams(100_000), number)
    assert drawn.min() > 0
    assert drawn.max() < 1
    # One draw in ten thousand fails by chance, and the seed is fixed.
    assert stats.kstest(drawn, "uniform").pvalue > 1e-4


def test_rows_columns_severities_and_seeds_have_nothing_to_do_with_one_another():
    n = 100_000
    drawn = np.stack(
        [
            uniforms(streams(n), 0),
            uniforms(streams(n), 1),
            uniforms(streams(n, severity=2), 0),
            uniforms(streams(n, seed=1), 0),
            uniforms(streams(n, corruption="drift"), 0),
            np.roll(uniforms(streams(n), 0), 1),
        ]
    )
    apart = np.corrcoef(drawn) - np.eye(len(drawn))
    # Five standard errors of a correlation that is 0.
    assert np.abs(apart).max() < 5 / np.sqrt(n)
