"""Places in the tables of normal_cells for many values. Importing this file imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.counter_kernels import U, word
from shiftcal.corruptions._kernels.normal_cells import SHIFT, TAIL_BITS, TAIL_PLACE

H = np.int16
UH = np.uint16
_CELL = UH(0x7FFF)
_SHIFT = H(SHIFT)
_TAIL = UH(TAIL_PLACE)
_TAIL_FIRST = U(1 << 31)
_TAIL_SHIFT = U(32 - TAIL_BITS)


@njit(error_model="numpy")
def fill_halves(words: Any, first: Any, a: Any, b: Any) -> None:
    """The random words ``first``, ``first + 1``, ... of a stream; each serves two values."""
    for i in range(words.shape[0]):
        words[i] = word(U(U(first) + U(i)), a, b)


@njit(error_model="numpy")
def look_up(table: Any, halves: Any, found: Any, rare: Any) -> Any:
    """The table's entry for each 16 random bits; how many of them are in the tail.

    Args:
        table: ``(3008,)``.
        halves: ``(s,)`` uint16, the random bits.
        found: ``(s,)`` gets the entries.
        rare: ``(s,)`` uint16 gets the positions of the values in the tail. Before that it holds
            the places in the table, which are found eight and more at a time.
    """
    for i in range(halves.shape[0]):
        cell = H(halves[i] & _CELL)
        rare[i] = UH(max(H(cell >> H(4)), H(cell - _SHIFT)))
    count = 0
    for i in range(halves.shape[0]):
        place = rare[i]
        found[i] = table[place]
        if place >= _TAIL:
            rare[count] = UH(i)
            count += 1
    return count


@njit(inline="always")
def tail_cell(value: Any, a: Any, b: Any) -> Any:
    """The cell of the tail for the value with this number in its image."""
    return word(U(_TAIL_FIRST + U(value)), a, b) >> _TAIL_SHIFT
