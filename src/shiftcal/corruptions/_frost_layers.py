"""Layers of which frost is made: clouds and crystal needles on a torus.

Everything is made from hashed integers by additions, multiplications, divisions and square roots
of single values, and by sums of integers: the same on every machine, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions._keys import stream_keys

Plane = NDArray[np.float32]

SIDE = 640
# (down, right) per pixel of length, at eight angles; halves of a turn are the same needle.
_DIRECTIONS = (
    (0.0, 1.0),
    (0.383, 0.924),
    (0.707, 0.707),
    (0.924, 0.383),
    (1.0, 0.0),
    (0.924, -0.383),
    (0.707, -0.707),
    (0.383, -0.924),
)
_FINE = float(1 << 20)


def clouds(cells: int, *, stream: tuple[int, int]) -> Plane:
    """Smooth noise of mean 0 and deviation 1 whose blots are ``SIDE / cells`` pixels wide.

    Random values on a grid, joined by cubic B-splines.
    """
    return standardised(_spline(_spline(_uniform(cells, stream)).T).T)


def needles(
    length: int, width: int, facets: NDArray[np.int64], *, stream: tuple[int, int]
) -> Plane:
    """Streaks of mean 0 and deviation 1, in the direction of the facet on which they lie.

    Noise is averaged along ``length`` pixels, a power of two, by adding shifted copies of sums.

    Args:
        length: How long a needle is.
        width: How wide it is, a divisor of ``SIDE``.
        facets: ``(SIDE, SIDE)`` numbers of directions, 0 to 7.
        stream: What the random numbers are made of.
    """
    grains = clouds(SIDE // width, stream=stream)
    out = np.empty_like(grains)
    for k, (down, right) in enumerate(_DIRECTIONS):
        line = grains
        step = 1
        while step < length:
            shift = (round(step * down), round(step * right))
            line = line + np.roll(line, shift, axis=(0, 1))
            step *= 2
        here = facets == k
        out[here] = line[here]
    return standardised(out)


def crystals(cells: int, *, stream: tuple[int, int]) -> tuple[NDArray[np.int64], Plane]:
    """Facets with ragged borders: the direction (0 to 7) of each, and the height above its rim.

    The plane falls to the nearest of random points, one in each of ``cells`` by ``cells`` squares
    (Worley, 1996); the height is the distance to the second nearest less that to the nearest.
    """
    texture, layer = stream
    size = np.float32(SIDE // cells)
    bend = np.float32(0.25) * size
    y, x = np.meshgrid(*[np.arange(SIDE, dtype=np.float32) % size] * 2, indexing="ij")
    y = y + bend * clouds(4 * cells, stream=(texture, layer + 1))
    x = x + bend * clouds(4 * cells, stream=(texture, layer + 2))
    down, right = (_uniform(cells, (texture, layer + k)) + np.float32(0.5) for k in (3, 4))
    kinds = np.floor(8 * (_uniform(cells, (texture, layer + 5)) + np.float32(0.5))).astype(np.int64)
    first = second = np.full((SIDE, SIDE), np.float32(1e9))
    facets = np.zeros((SIDE, SIDE), np.int64)
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            dy = _enlarged(np.roll(down, (-i, -j), axis=(0, 1)) + np.float32(i)) * size - y
            dx = _enlarged(np.roll(right, (-i, -j), axis=(0, 1)) + np.float32(j)) * size - x
            square = dy * dy + dx * dx
            second = np.minimum(second, np.maximum(first, square))
            nearer = square < first
            first = np.minimum(first, square)
            facets = np.where(nearer, _enlarged(np.roll(kinds, (-i, -j), axis=(0, 1))), facets)
    return facets, standardised(np.sqrt(second) - np.sqrt(first))


def standardised(plane: Plane) -> Plane:
    """The plane with mean 0 and deviation 1, which are counted in whole numbers."""
    whole = np.rint(plane.astype(np.float64) * _FINE).astype(np.int64)
    mean = int(whole.sum()) / whole.size
    centred = whole - round(mean)
    # In steps of 2**-10 the squares of 640 x 640 values add up without overflow.
    deviation = (int(((centred >> 10) ** 2).sum()) / whole.size) ** 0.5
    out: Plane = (centred / (deviation * 1024)).astype(np.float32)
    return out


def _uniform(cells: int, stream: tuple[int, int]) -> Plane:
    """Random numbers in [-1/2, 1/2), ``(cells, cells)``."""
    texture, layer = stream
    words = stream_keys(
        seed=layer,
        corruption="frost texture",
        severity=texture,
        indices=np.arange(cells * cells, dtype=np.int64),
    )[:, 0]
    values = (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24) - np.float32(0.5)
    return values.reshape(cells, cells)


def _spline(rows: Plane) -> Plane:
    """Cubic B-spline through the rows of a torus, stretched to ``SIDE`` rows."""
    factor = SIDE // len(rows)
    t = (np.arange(factor, dtype=np.float32) + np.float32(0.5)) / np.float32(factor)
    u = 1 - t
    weights = (u * u * u, 4 + 3 * t * t * t - 6 * t * t, 4 + 3 * u * u * u - 6 * u * u, t * t * t)
    out = np.zeros((len(rows), factor, rows.shape[1]), np.float32)
    for shift, weight in zip((1, 0, -1, -2), weights, strict=True):
        out += np.roll(rows, shift, axis=0)[:, None] * weight[:, None]
    return out.reshape(SIDE, -1)


def _enlarged(grid: NDArray[Any]) -> NDArray[Any]:
    factor = SIDE // len(grid)
    return grid.repeat(factor, axis=0).repeat(factor, axis=1)
