"""Sums in whole numbers, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shiftcal.numerics.sketch import EXACT_BITS, exact_sum, fixed_square_sum, fixed_sum

FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30)
PARTS_OF_ONE = st.lists(st.floats(0, 1), max_size=30)


@given(FLOATS)
def test_an_exact_sum_is_that_of_fractions(values):
    whole = exact_sum(np.array(values, dtype=np.float64))
    assert Fraction(whole, 2**EXACT_BITS) == sum(map(Fraction, values), Fraction(0))


@given(PARTS_OF_ONE)
def test_fixed_sums_are_those_of_rounded_values(values):
    rounded = [round(Fraction(value) * 2**40) for value in values]
    x = np.array(values, dtype=np.float64)
    assert fixed_sum(x, 40) == sum(rounded)
    assert fixed_square_sum(x, 40) == sum(q * q for q in rounded)


def test_a_sum_may_be_too_large_for_64_bits():
    values = np.full(5000, 2.0**52 + 1)
    assert fixed_sum(values, 0) == 5000 * (2**52 + 1)
    assert fixed_square_sum(values, 0) == 5000 * (2**52 + 1) ** 2
