"""Compiled noise. Importing this file imports numba: import it in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions.kernels.random_kernels import (
    UH,
    H,
    U,
    fill_halves,
    fill_words,
    look_up,
    tail_cell,
    word,
)
from shiftcal.corruptions.kernels.random_tables import SLOPE_BITS, UNIT
from shiftcal.numerics.jit import compiled

# --------------------------------------------------------------------------------------
# Additive noise on every value.
# --------------------------------------------------------------------------------------

_BLOCK = 2048


@compiled(error_model="numpy")
def add_noise(images: Any, out: Any, steps: Any, tail: Any, keys: Any) -> None:
    """Add a whole number of levels to every value, and stop at 0 and 255.

    Value ``i`` of an image takes 16 bits of the number ``i // 2`` of its stream, the lower half
    first, and if they fall into the tail the number ``2**31 + i``. A step of ``k`` levels or more
    upwards is as likely as one of ``k + 1`` or more downwards: both are ``floor`` of the noise.

    Args:
        images: ``(m, s)`` uint8.
        out: ``(m, s)`` uint8.
        steps: ``(3008,)`` uint16, compressed.
        tail: ``(4096,)`` int16.
        keys: ``(m, 2)`` uint32.
    """
    m, size = images.shape
    words = np.empty(_BLOCK // 2, np.uint32)
    halves = words.view(np.uint16)
    found = np.empty(_BLOCK, np.uint16)
    rare = np.empty(_BLOCK, np.uint16)
    for j in range(m):
        a, b = keys[j, 0], keys[j, 1]
        for start in range(0, size, _BLOCK):
            n = min(_BLOCK, size - start)
            fill_halves(words[: (n + 1) // 2], start // 2, a, b)
            count = look_up(steps, halves[:n], found[:n], rare[:n])
            values, result = images[j, start : start + n], out[j, start : start + n]
            _add(values, result, found, halves)
            for r in range(count):
                i = rare[r]
                step = tail[tail_cell(start + i, a, b)]
                result[i] = _moved(values[i], step, halves[i])


@njit(error_model="numpy")
def _add(values: Any, result: Any, found: Any, halves: Any) -> None:
    for i in range(values.shape[0]):
        step = H(UH(found[i] + UH(halves[i] & UH(15))) >> UH(4))
        result[i] = _moved(values[i], step, halves[i])


@njit(inline="always")
def _moved(value: Any, step: Any, half: Any) -> Any:
    # floor(-y) is ~floor(y), and that is floor(y) with all bits turned over.
    signed = H(step ^ H(-H(half >> UH(15))))
    return np.uint8(min(max(H(H(value) + signed), H(0)), H(255)))


# --------------------------------------------------------------------------------------
# Salt and pepper.
# --------------------------------------------------------------------------------------


@compiled(error_model="numpy")
def salt_and_pepper(images: Any, out: Any, threshold: Any, keys: Any) -> None:
    """Replace a value by 0 or 255 where its random number is below the threshold.

    Value ``i`` of an image takes the number ``i`` of its stream; the last bit says which of the
    two it becomes, and an even threshold makes both equally likely.

    Args:
        images: ``(m, s)`` uint8.
        out: ``(m, s)`` uint8.
        threshold: uint32, even.
        keys: ``(m, 2)`` uint32.
    """
    m, size = images.shape
    for j in range(m):
        a, b = keys[j, 0], keys[j, 1]
        values, result = images[j], out[j]
        for i in range(size):
            random = word(U(i), a, b)
            # Masks, because a choice keeps the compiler from taking eight at a time.
            kept = U(U(0) - U(random >= threshold))
            salt = U(U(0) - U(random & U(1)))
            result[i] = np.uint8(U(U(U(values[i]) & kept) | U(salt & U(~kept))))


# --------------------------------------------------------------------------------------
# Values replaced by random ones.
# --------------------------------------------------------------------------------------

U64 = np.uint64
_LEVELS_BLOCK = 1024
_BELOW = U(0xFFFFFF)


@compiled(error_model="numpy")
def draw_levels(images: Any, out: Any, table: Any, keys: Any) -> None:
    """Replace every value by one drawn from the alias table of its level.

    Value ``i`` of an image takes the number ``i`` of its stream.

    Args:
        images: ``(m, s)`` uint8.
        out: ``(m, s)`` uint8.
        table: ``(256 * 256,)`` uint32, by level and the first eight bits of the number.
        keys: ``(m, 2)`` uint32.
    """
    m, size = images.shape
    words = np.empty(_LEVELS_BLOCK, np.uint32)
    entries = np.empty(_LEVELS_BLOCK, np.uint32)
    for j in range(m):
        for start in range(0, size, _LEVELS_BLOCK):
            n = min(_LEVELS_BLOCK, size - start)
            fill_words(words[:n], start, keys[j, 0], keys[j, 1])
            values, result = images[j, start : start + n], out[j, start : start + n]
            for i in range(n):
                entries[i] = table[(U64(values[i]) << U64(8)) | U64(words[i] >> U(24))]
            _choose(words, entries, result)


@njit(error_model="numpy")
def _choose(words: Any, entries: Any, result: Any) -> None:
    for i in range(result.shape[0]):
        own = U(U(0) - U(U(words[i] & _BELOW) < U(entries[i] >> U(8))))
        result[i] = np.uint8(U(U(U(words[i] >> U(24)) & own) | U(entries[i] & U(~own))))


# --------------------------------------------------------------------------------------
# Noise in proportion to the value.
# --------------------------------------------------------------------------------------

F = np.float32
I32 = np.int32
_UNIT = F(UNIT)
_SLOPE = U((1 << SLOPE_BITS) - 1)
_START = U(SLOPE_BITS)


@compiled(error_model="numpy")
def scale_noise(images: Any, out: Any, spread: Any, table: Any, tail: Any, keys: Any) -> None:
    """``floor(x + x * spread * z)`` for every value, stopped at 0 and 255.

    Value ``i`` of an image takes 16 bits of the number ``i // 2`` of its stream, the lower half
    first, and if they fall into the tail the number ``2**31 + i``.

    Args:
        images: ``(m, s)`` uint8.
        out: ``(m, s)`` uint8.
        spread: Standard deviation of the factor, float32.
        table: ``(3008,)`` uint32, deviates with slopes.
        tail: ``(4096,)`` float32.
        keys: ``(m, 2)`` uint32.
    """
    m, size = images.shape
    words = np.empty(_BLOCK // 2, np.uint32)
    halves = words.view(np.uint16)
    found = np.empty(_BLOCK, np.uint32)
    rare = np.empty(_BLOCK, np.uint16)
    for j in range(m):
        a, b = keys[j, 0], keys[j, 1]
        for start in range(0, size, _BLOCK):
            n = min(_BLOCK, size - start)
            fill_halves(words[: (n + 1) // 2], start // 2, a, b)
            count = look_up(table, halves[:n], found[:n], rare[:n])
            values, result = images[j, start : start + n], out[j, start : start + n]
            _scale(values, result, spread, found, halves)
            for r in range(count):
                i = rare[r]
                deviate = tail[tail_cell(start + i, a, b)]
                result[i] = _scaled(values[i], spread, deviate, halves[i])


@njit(error_model="numpy")
def _scale(values: Any, result: Any, spread: Any, found: Any, halves: Any) -> None:
    for i in range(values.shape[0]):
        entry = found[i]
        along = U(U(entry & _SLOPE) * U(halves[i] & UH(15))) >> U(4)
        deviate = F(F(I32(U(U(entry >> _START) + U(along)))) * _UNIT)
        result[i] = _scaled(values[i], spread, deviate, halves[i])


@njit(inline="always")
def _scaled(value: Any, spread: Any, deviate: Any, half: Any) -> Any:
    x = F(value)
    sign = F(I32(I32(1) - I32(UH(half >> UH(14)) & UH(2))))
    # As whole numbers, because a choice between floats must think of what is not a number.
    level = I32(np.floor(F(x + F(F(F(x * spread) * deviate) * sign))))
    return np.uint8(min(max(level, I32(0)), I32(255)))
