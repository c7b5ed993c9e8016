"""Sums as whole numbers of a unit, which come out the same in any order and grouping."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# The smallest difference two floats can have: every finite float is a whole multiple of it.
EXACT_BITS = 1074
# Sums of halves fit into 64 bits for any number of values that fits into memory.
_HALF = 26


def exact_sum(values: NDArray[np.float64]) -> int:
    """The sum of finite values without any rounding, in units of ``2**-1074``."""
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    shift = exponent.astype(np.int64) - 53 + EXACT_BITS
    # What is below the unit is zero: a subnormal's mantissa has as many zeros at its end.
    below = shift < 0
    whole[below] >>= -shift[below]
    shift[below] = 0
    return sum(_sum(whole[shift == s]) << int(s) for s in np.unique(shift))


def fixed_sum(values: NDArray[np.float64], bits: int) -> int:
    """The sum of the nearest whole multiples of ``2**-bits``, in that unit."""
    return _sum(np.rint(np.ldexp(values, bits)).astype(np.int64))


def fixed_square_sum(values: NDArray[np.float64], bits: int) -> int:
    """The sum of the squares of those multiples, in units of ``2**(-2 bits)``; bits up to 52."""
    whole = np.rint(np.ldexp(values, bits)).astype(np.int64)
    high, low = whole >> _HALF, whole & ((1 << _HALF) - 1)
    squares = [_sum(high * high), _sum(high * low), _sum(low * low)]
    return (squares[0] << (2 * _HALF)) + (squares[1] << (_HALF + 1)) + squares[2]


def _sum(whole: NDArray[np.int64]) -> int:
    """The sum of whole numbers of up to 53 bits, which may be too large for 64."""
    high, low = whole >> _HALF, whole & ((1 << _HALF) - 1)
    return (int(high.sum()) << _HALF) + int(low.sum())
