"""Arithmetic that stays narrow: numpy's own of 16 and 32 bits says what is right."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from shiftcal.corruptions._kernels.narrow_int_kernels import add, mul, shl, shr, sub


@njit
def _all(a, b, places):
    return add(a, b), sub(a, b), mul(a, b), shl(a, places), shr(a, places)


@pytest.mark.parametrize("kind", [np.int16, np.int32])
def test_results_wrap_around_at_the_width_of_the_first_number(kind):
    ends = np.iinfo(kind)
    pairs = [(ends.max, 1), (ends.min, -1), (ends.min, ends.min), (1234, -567), (-9, 4)]
    for a, b in pairs:
        x, y = np.array([a], kind), np.array([b], kind)
        expected = x + y, x - y, x * y, x << 3, x >> 3
        assert _all(kind(a), kind(b), 3) == tuple(int(value[0]) for value in expected)


def test_a_plain_number_counts_as_one_of_32_bits():
    assert _all(2**31 - 1, 1, 0)[0] == -(2**31)
    assert _all(np.uint8(255), 255, 0)[2] == 255 * 255
