"""Pixels that trade places with their neighbours, between two blurs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shiftcal.corruptions._kernels.counter_kernels import U, word
from shiftcal.corruptions._kernels.inner_kernels import inner
from shiftcal.corruptions._kernels.neighbourhood_kernels import frame, weigh_neighbours
from shiftcal.corruptions._kernels.separable_kernels import BAND, load, smooth
from shiftcal.corruptions._kernels.smoothing_plan import RUN
from shiftcal.numerics._jit import compiled

_LOW = U(0xFFFF)
_BYTE = U(0xFF)


class Scratch(NamedTuple):
    """Memory to blur in."""

    plane: Any
    middle: Any
    sums: Any
    framed: Any
    differences: Any


@compiled()
def glass_images(
    images: Any, out: Any, smoothing: Any, neighbours: Any, moves: Any, keys: Any
) -> None:
    """Blur, displace pixels, blur again.

    Number ``(t h + y) w + x`` of an image's stream displaces the pixel ``(y, x)`` in pass ``t``:
    of its lower 16 bits, ``v``, comes ``dx = (2 d v >> 16) - d``, of the upper ones ``dy``.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        smoothing: A ``Smoothing``.
        neighbours: A ``Neighbours``, used in its place where its radius is 1.
        moves: ``(2,)`` int64, the distance ``d`` and the number of passes.
        keys: ``(m, 2)`` uint32.
    """
    m, height, width = images.shape
    padded = len(smoothing.places)
    scratch = Scratch(
        np.empty(len(smoothing.rows) * width, np.uint16),
        np.empty((min(BAND, height), padded), np.uint16),
        np.empty(max(padded, RUN), np.uint16),
        np.empty((height + 2, width + 6), np.uint8),
        np.empty((3, max(width + 6, RUN)), np.int16),
    )
    still = np.empty((height, width), np.uint8)
    pixels = np.empty((height, width // 3), np.uint32)
    steps = np.empty(width // 3, np.uint32)
    blurred = len(smoothing.weights) > 1
    for j in range(m):
        if blurred:
            _blur(still, images[j], smoothing, neighbours, scratch)
            _pack(pixels, still)
        else:
            _pack(pixels, images[j])
        for t in range(moves[1]):
            _displace(pixels, steps, moves[0], t, keys[j])
        if blurred:
            _unpack(still, pixels)
            _blur(out[j], still, smoothing, neighbours, scratch)
        else:
            _unpack(out[j], pixels)


@inner()
def _blur(out: Any, image: Any, smoothing: Any, neighbours: Any, scratch: Any) -> None:
    if len(smoothing.weights) == 2:
        frame(scratch.framed, image, neighbours.rows, neighbours.columns)
        weights = neighbours.weights
        weigh_neighbours(out, scratch.framed, weights[0], weights[1], scratch.differences)
    else:
        load(scratch.plane, image, smoothing.rows)
        smooth(out, scratch.plane, smoothing, scratch.middle, scratch.sums)


@inner()
def _displace(pixels: Any, steps: Any, distance: Any, t: Any, key: Any) -> None:
    """One pass from the last pixel to the first: each becomes a copy of one near it.

    What was copied stays where it is, and a pixel further on may copy a copy.
    """
    height, width = pixels.shape
    flat = pixels.reshape(pixels.size)
    span, across = U(2 * distance), U(width)
    for y in range(height - distance, distance, -1):
        first = U(U(U(t) * U(height) + U(y)) * across)
        for x in range(width):
            bits = word(U(first + U(x)), key[0], key[1])
            dx = U(U(U(bits & _LOW) * span) >> U(16))
            dy = U(U(U(bits >> U(16)) * span) >> U(16))
            steps[x] = U(U(dy * across) + dx)
        corner = np.uintp((y - distance) * width - distance)
        for x in range(width - distance, distance, -1):
            flat[np.uintp(y * width + x)] = flat[corner + np.uintp(x) + np.uintp(steps[x])]


@inner()
def _pack(pixels: Any, image: Any) -> None:
    height, width = pixels.shape
    for y in range(height):
        line, x = pixels[y], image[y]
        for i in range(width):
            line[i] = U(U(x[3 * i]) | U(U(x[3 * i + 1]) << U(8)) | U(U(x[3 * i + 2]) << U(16)))


@inner()
def _unpack(image: Any, pixels: Any) -> None:
    height, width = pixels.shape
    for y in range(height):
        line, x = pixels[y], image[y]
        for i in range(width):
            x[3 * i] = np.uint8(line[i] & _BYTE)
            x[3 * i + 1] = np.uint8(U(line[i] >> U(8)) & _BYTE)
            x[3 * i + 2] = np.uint8(U(line[i] >> U(16)) & _BYTE)
