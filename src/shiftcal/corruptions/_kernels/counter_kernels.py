"""Random numbers from a counter: any number of the stream, in any order, without state.

``word(i, a, b)`` is the ``i``-th 32-bit number of the stream with the key ``(a, b)``: the counter
is mixed with one half of the key, then with both, by the multiply-and-shift finalisers that
Wellons found by search (2018). numba turns 32-bit arithmetic into 64-bit unless told at every step
not to, and then it is no longer done eight at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

U = np.uint32
_FIRST = (U(0x7FEB352D), U(0x846CA68B))
_SECOND = (U(0xED5AD4BB), U(0xAC4C1B51), U(0x31848BAB))
_INVERSE_24 = np.float32(2.0**-24)


@njit(inline="always")
def word(i: Any, a: Any, b: Any) -> Any:
    """The ``i``-th number, a uint32 of which all bits are random."""
    x = U(U(i) + a)
    x = U(x ^ U(x >> U(16)))
    x = U(x * _FIRST[0])
    x = U(x ^ U(x >> U(15)))
    x = U(x * _FIRST[1])
    x = U(x ^ U(x >> U(16)))
    # With a once more: streams that differ in a alone would else be one, a few numbers ahead.
    x = U(U(x ^ b) + a)
    x = U(x ^ U(x >> U(17)))
    x = U(x * _SECOND[0])
    x = U(x ^ U(x >> U(11)))
    x = U(x * _SECOND[1])
    x = U(x ^ U(x >> U(15)))
    x = U(x * _SECOND[2])
    return U(x ^ U(x >> U(14)))


@njit(inline="always")
def unit(i: Any, a: Any, b: Any) -> Any:
    """The ``i``-th number as a float32 on the 2**24 multiples of 2**-24 in [0, 1)."""
    return np.float32(U(word(i, a, b) >> U(8))) * _INVERSE_24


@njit(nogil=True)
def fill_words(out: Any, first: Any, a: Any, b: Any) -> None:
    """Numbers ``first``, ``first + 1``, ... into the flat uint32 array ``out``."""
    for i in range(out.shape[0]):
        out[i] = word(U(U(first) + U(i)), a, b)
