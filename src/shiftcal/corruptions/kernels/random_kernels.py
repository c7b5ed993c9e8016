"""Counter-based random numbers and integer helpers. Importing this file imports numba."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from shiftcal.corruptions.kernels.random_tables import SHIFT, TAIL_BITS, TAIL_PLACE

# --------------------------------------------------------------------------------------
# Random numbers from a counter: any number of the stream, in any order, without state.
#
# ``word(i, a, b)`` is the ``i``-th 32-bit number of the stream with the key ``(a, b)``: the counter
# is mixed with one half of the key, then with both, by the multiply-and-shift finalisers that
# Wellons found by search (2018). numba turns 32-bit arithmetic into 64-bit unless told at every
# step
# not to, and then it is no longer done eight at a time.
# --------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------
# Compiling functions that only other compiled functions call.
# --------------------------------------------------------------------------------------

# Leaving out what Python would need to call them takes a quarter off the time to compile.
inner = functools.partial(njit, no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined = inner(forceinline=True)


# --------------------------------------------------------------------------------------
# Arithmetic of whole numbers of 32 and 16 bits that stays one of 32 and 16 bits.
#
# numba adds and multiplies in 64 bits, and the compiler keeps them where it cannot rule out that it
# matters, and where it sees that it does not: half or a quarter as many values at a time. These are
# the processor's narrow instructions themselves; what does not fit wraps around.
# --------------------------------------------------------------------------------------


def _instruction(name: str) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return getattr(builder, name)(*args)

    def typed(context: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
        kind = types.int16 if a == types.int16 else types.int32
        return kind(kind, kind), code

    typed.__doc__ = f"Instruction {name!r}: of 16 bits if the first number is, of 32 otherwise."
    typed.__name__ = name
    return intrinsic(typed)


add = _instruction("add")
sub = _instruction("sub")
mul = _instruction("mul")
shl = _instruction("shl")
shr = _instruction("ashr")


# --------------------------------------------------------------------------------------
# Places in the tables of normal_cells for many values.
# --------------------------------------------------------------------------------------

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
