"""Colour images sampled between pixels. Importing this file imports numba: only in functions.

A pixel is one 64-bit number with three lanes of 21 bits, one for each channel, so that a single
multiplication weighs all three. Weights are whole numbers with the sum 2**13 for pixels of 8
bits, and 2**10 for pixels of 11 bits, of which the last three are fractions of a grey level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

F = np.float32
U32 = np.uint32
U64 = np.uint64
# Bits of the weights, for pixels of 8 and of 11 bits.
FOR_EIGHT = 13
FOR_ELEVEN = 10

_BYTE = U64(0xFF)
_ONES = U64(1 | 1 << 21 | 1 << 42)
_HALF = U64(int(_ONES) << 9)
_ELEVEN_BITS = U64(int(_ONES) * 0x7FF)


@njit
def pack(image: Any, plane: Any) -> None:
    """An image ``(h, w, 3)`` into ``(h + 1, w + 1)`` uint64; the last row and column are unused."""
    h, w = image.shape[:2]
    for y in range(h):
        source, row = image[y].reshape(-1), plane[y]
        for x in range(w):
            row[x] = (
                U64(source[3 * x])
                | U64(source[3 * x + 1]) << U64(21)
                | U64(source[3 * x + 2]) << U64(42)
            )


@njit(inline="always")
def fold(s: Any, n: Any, offset: Any) -> Any:
    """The point in ``[0, n - 1]`` that ``s`` is mirrored to.

    With an offset of 0 the mirrors stand on the outermost pixels (reflect-101 in OpenCV), with
    1/2 on their outer edges (reflect in scipy), where the outermost value holds. What is 255
    periods away or not a number is somewhere in the image all the same.
    """
    period = F(F(2) * (F(n - 1) + F(2) * offset))
    limit = F(F(255) * period)
    s = F(s + offset)
    s = s if s > -limit else F(-limit)
    s = s if s < limit else limit
    # Cutting a positive number is a floor that vectorises; near a whole number of periods it may
    # be one too low or too high, which mirroring makes good.
    periods = F(np.int32(F(s * F(F(1) / period)) + F(256))) - F(256)
    rest = F(s - F(periods * period))
    back = F(period - rest)
    rest = F(abs(rest if rest < back else back) - offset)
    rest = rest if rest > F(0) else F(0)
    return rest if rest < F(n - 1) else F(n - 1)


@njit
def locate(xs: Any, ys: Any, shape: Any, offset: Any, bits: Any, at: Any, shares: Any) -> None:
    """For every point its upper left pixel in a packed plane, and the other three's weights.

    Args:
        xs: ``(w,)`` float32, any.
        ys: ``(w,)`` float32, any.
        shape: Of the image, ``(h, w)``.
        offset: 0 or 1/2, float32; see :func:`fold`.
        bits: The four weights have the sum ``2**bits``.
        at: ``(w,)`` uint32, to be written: indices into the flat plane of ``w + 1`` columns.
        shares: ``(3, w)`` uint32, to be written: right, below, and below to the right.
    """
    h, w = shape
    scale = F(1 << bits)
    bits = np.int32(bits)
    half = np.int32(1 << (bits - 1))
    stride = np.int32(w + 1)
    right, below, beyond = shares[0], shares[1], shares[2]
    for j in range(xs.shape[0]):
        x, y = fold(xs[j], w, offset), fold(ys[j], h, offset)
        column, row = np.int32(x), np.int32(y)
        at[j] = U32(np.int32(np.int32(row * stride) + column))
        u = np.int32(F(F(x - F(column)) * scale) + F(0.5))
        v = np.int32(F(F(y - F(row)) * scale) + F(0.5))
        both = np.int32(np.int32(np.int32(u * v) + half) >> bits)
        right[j] = U32(np.int32(u - both))
        below[j] = U32(np.int32(v - both))
        beyond[j] = U32(both)


@njit(inline="always")
def _weigh(
    plane: Any, stride: Any, total: Any, place: Any, right: Any, below: Any, beyond: Any
) -> Any:
    p = U64(place)
    r, b, d = U64(right), U64(below), U64(beyond)
    left = U64(U64(U64(total - r) - b) - d)
    q = U64(p + stride)
    return U64(
        U64(U64(plane[p] * left) + U64(plane[U64(p + U64(1))] * r))
        + U64(U64(plane[q] * b) + U64(plane[U64(q + U64(1))] * d))
    )


@njit
def sample_packed(plane: Any, stride: Any, at: Any, shares: Any, out: Any) -> None:
    """Pixels of 8 bits to pixels of 11 bits, rounded."""
    right, below, beyond = shares[0], shares[1], shares[2]
    step, total = U64(stride), U64(1 << FOR_EIGHT)
    for j in range(at.shape[0]):
        lanes = _weigh(plane, step, total, at[j], right[j], below[j], beyond[j])
        out[j] = U64(U64(lanes + _HALF) >> U64(10)) & _ELEVEN_BITS


@njit
def sample_bytes(plane: Any, stride: Any, bits: Any, at: Any, shares: Any, out: Any) -> None:
    """Pixels of 8 or 11 bits to channels ``(3 w,)`` uint8, cut to whole grey levels."""
    right, below, beyond = shares[0], shares[1], shares[2]
    step, total = U64(stride), U64(1 << bits)
    for j in range(at.shape[0]):
        lanes = _weigh(plane, step, total, at[j], right[j], below[j], beyond[j])
        out[3 * j] = np.uint8(U64(lanes >> U64(13)) & _BYTE)
        out[3 * j + 1] = np.uint8(U64(lanes >> U64(34)) & _BYTE)
        out[3 * j + 2] = np.uint8(U64(lanes >> U64(55)) & _BYTE)
