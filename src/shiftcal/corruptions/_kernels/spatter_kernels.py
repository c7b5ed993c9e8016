"""Water and mud on images. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.corruptions._kernels.canny_kernels import edges
from shiftcal.corruptions._kernels.chamfer_kernels import distances
from shiftcal.corruptions._kernels.counter_kernels import U, word
from shiftcal.corruptions._kernels.framed_kernels import FRAME, Z
from shiftcal.corruptions._kernels.relief_kernels import (
    box_distances,
    box_levels,
    emboss,
    equalize,
)
from shiftcal.corruptions._kernels.smooth_field_kernels import (
    NEAREST,
    scratch_size,
    smooth_field,
)
from shiftcal.numerics._jit import compiled

F, H, W = np.float32, np.int16, np.int32
_LOW = U(0xFFFF)
_BLOCK = 512
_WHITE = F(255)
_LOW_GRADIENT, _HIGH_GRADIENT, _FARTHEST = 50, 150, 20
_LEAST_MUD = F(0.8)
_PALE_TURQUOISE = (F(175 / 255), F(238 / 255), F(238 / 255))
_BROWN = (F(63 / 255), F(42 / 255), F(20 / 255))


@njit
def fill_normals(out: Any, table: Any, a: Any, b: Any) -> None:
    """Normal deviates: numbers ``2 i`` and ``2 i + 1`` are the halves of word ``i`` of the stream.

    Args:
        out: Flat float32.
        table: ``(65536,)`` float32, all equally likely.
        a: One half of the key.
        b: The other.
    """
    n = out.shape[0]
    words = np.empty(_BLOCK, np.uint32)
    for start in range(0, n, 2 * _BLOCK):
        pairs = min(_BLOCK, (n - start) // 2)
        for i in range(pairs):
            words[i] = word(U(U(start // 2) + U(i)), a, b)
        for i in range(pairs):
            out[start + 2 * i] = table[words[i] & _LOW]
            out[start + 2 * i + 1] = table[words[i] >> U(16)]
    if n % 2 == 1:
        out[n - 1] = table[word(U(n // 2), a, b) & _LOW]


@njit
def fill_liquid(field: Any, levels: Any, out: Any) -> None:
    """Whole grey levels, 0 where the field is too low; above 255 they begin anew at 0.

    Args:
        field: ``(h, w)`` float32, grey levels without their mean.
        levels: The mean, and the least value that is wet.
        out: A framed plane of int16.
    """
    h, w = field.shape
    mean, least = levels
    for y in range(h):
        row, line = field[y], out[(y + FRAME) * (w + 2 * FRAME) + FRAME :][:w]
        for x in range(w):
            value = row[x] + mean
            line[x] = H(W(value) & W(255)) if value >= least else H(0)


@njit(inline="always")
def water(liquid: Any, h: Any, w: Any, planes: Any, floats: Any, counts: Any) -> Any:
    """The light of a liquid layer, and the largest value in it.

    Args:
        liquid: A framed plane of int16 in 0 .. 255; its frame will be 0.
        h: The plane's height.
        w: The plane's width.
        planes: ``(4, framed_size)`` int16; overwritten.
        floats: ``(2, framed_size)`` float32; the first will be the light, in whole numbers.
        counts: ``(4, 256)`` int32; overwritten.
    """
    state, sums = planes[3].view(np.uint8)[: liquid.shape[0]], floats[1].view(np.int32)
    edges(liquid, h, w, _LOW_GRADIENT, _HIGH_GRADIENT, state, planes)
    distances(state, h, w, _FARTHEST, floats[0])
    box_distances(floats[0], h, w, sums, planes[0])
    equalize(planes[0], h, w, counts)
    emboss(planes[0], h, w, planes[1])
    box_levels(planes[1], h, w, planes[0], planes[2])
    largest = W(0)
    light, shade = floats[0], planes[2]
    for i in range(light.shape[0]):
        value = W(W(liquid[i]) * W(shade[i]))
        light[i] = F(value)
        largest = max(largest, value)
    return largest


@njit(inline="always")
def _add_water(image: Any, out: Any, light: Any, largest: Any, strength: Any) -> None:
    h, w = image.shape[0], image.shape[1] // 3
    one, two, three = Z(1), Z(2), Z(3)
    c0, c1, c2 = _PALE_TURQUOISE
    for y in range(h):
        source, to = image[y], out[y]
        line = light[(y + FRAME) * (w + 2 * FRAME) + FRAME :][:w]
        for x in range(w):
            i = three * Z(x)
            m = line[x] / largest * strength
            to[i] = np.uint8(W(min(F(source[i]) / _WHITE + m * c0, F(1)) * _WHITE))
            to[i + one] = np.uint8(W(min(F(source[i + one]) / _WHITE + m * c1, F(1)) * _WHITE))
            to[i + two] = np.uint8(W(min(F(source[i + two]) / _WHITE + m * c2, F(1)) * _WHITE))


@njit(inline="always")
def _add_mud(image: Any, out: Any, mud: Any) -> None:
    h, w = image.shape[0], image.shape[1] // 3
    one, two, three = Z(1), Z(2), Z(3)
    c0, c1, c2 = _BROWN
    for y in range(h):
        source, to, line = image[y], out[y], mud[y]
        for x in range(w):
            i = three * Z(x)
            m = line[x] if line[x] >= _LEAST_MUD else F(0)
            rest = F(1) - m
            r = F(source[i]) / _WHITE * rest + c0 * m
            g = F(source[i + one]) / _WHITE * rest + c1 * m
            b = F(source[i + two]) / _WHITE * rest + c2 * m
            to[i] = np.uint8(W(min(r, F(1)) * _WHITE))
            to[i + one] = np.uint8(W(min(g, F(1)) * _WHITE))
            to[i + two] = np.uint8(W(min(b, F(1)) * _WHITE))


@compiled()
def splash(
    images: Any, out: Any, table: Any, weights: Any, levels: Any, strength: Any, keys: Any
) -> None:
    """Water on a block of images. An image on which no drop falls stays as it is.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        table: ``(65536,)`` float32, all equally likely, of mean 0 in grey levels.
        weights: ``(2 r + 1,)`` float32, which smooth the field.
        levels: The mean of the field and its least value that is wet, in grey levels.
        strength: The light of the brightest drop.
        keys: ``(m, 2)`` uint32; word ``i`` of an image's stream makes pixels ``2 i``, ``2 i + 1``.
    """
    m, h, w = images.shape[0], images.shape[1], images.shape[2] // 3
    field = np.empty((h, w), np.float32)
    scratch = np.empty(scratch_size(h, w, weights.shape[0]), np.float32)
    size = (h + 2 * FRAME) * (w + 2 * FRAME)
    liquid = np.empty(size, np.int16)
    planes, floats = np.zeros((4, size), np.int16), np.zeros((2, size), np.float32)
    counts = np.empty((4, 256), np.int32)
    for j in range(m):
        fill_normals(field.reshape(-1), table, keys[j, 0], keys[j, 1])
        smooth_field(field, weights, NEAREST, scratch)
        fill_liquid(field, levels, liquid)
        largest = water(liquid, h, w, planes, floats, counts)
        if largest == 0:
            largest = W(1)
        _add_water(images[j], out[j], floats[0], F(largest), strength)


@compiled()
def muddy(
    images: Any, out: Any, table: Any, weights: Any, levels: Any, blur: Any, keys: Any
) -> None:
    """Mud on a block of images.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        table: As in :func:`splash`.
        weights: As in :func:`splash`.
        levels: As in :func:`splash`.
        blur: ``(2 q + 1,)`` float32, which smooth the mud's outline.
        keys: As in :func:`splash`.
    """
    m, h, w = images.shape[0], images.shape[1], images.shape[2] // 3
    mean, least = levels
    taps = max(weights.shape[0], blur.shape[0])
    field, scratch = np.empty((h, w), np.float32), np.empty(scratch_size(h, w, taps), np.float32)
    flat = field.reshape(-1)
    for j in range(m):
        fill_normals(flat, table, keys[j, 0], keys[j, 1])
        smooth_field(field, weights, NEAREST, scratch)
        for i in range(flat.shape[0]):
            flat[i] = F(1) if flat[i] + mean > least else F(0)
        smooth_field(field, blur, NEAREST, scratch)
        _add_mud(images[j], out[j], field)
