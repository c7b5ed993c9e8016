"""Smoothing of a random field by symmetric weights. Imports numba: import it in functions.

The field is copied into a buffer with room for its border, so that a neighbour is a fixed number
of places away and the loops can run over many rows at once, which matters when rows are short.
"""

from __future__ import annotations

from typing import Any

from numba import njit

NEAREST = 0
REFLECT = 1
# As many values as stay in the first-level cache with those they are made of.
_CHUNK = 2048


@njit
def border_index(i: Any, n: Any, border: Any) -> Any:
    """The index in ``0 .. n - 1`` that stands for ``i``, which may be any whole number.

    Border 0 repeats the last value (``a a | a b c | c c``), 1 mirrors with it (``b a | a b c |
    c b``) as often as it takes: what ``scipy.ndimage`` calls nearest and reflect.
    """
    if border == REFLECT:
        i = i % (2 * n)
        return min(i, 2 * n - 1 - i)
    return min(max(i, 0), n - 1)


@njit
def scratch_size(height: Any, width: Any, taps: Any) -> Any:
    """How many float32 :func:`smooth_field` and :func:`smooth_rows` need to work in."""
    tall = (height + taps - 1) * width
    wide = height * (width + taps - 1)
    return max(tall, wide) + wide


@njit(nogil=True)
def smooth_field(field: Any, weights: Any, border: Any, scratch: Any) -> None:
    """Convolve a plane with ``weights`` along both axes, columns first, in place.

    Taps are added from the middle outwards, both sides at once, at every pixel in that order.

    Args:
        field: ``(h, w)`` float32, contiguous.
        weights: ``(2 r + 1,)`` float32, symmetric; ``r`` may exceed the plane.
        border: 0 for nearest, 1 for reflect; see :func:`border_index`.
        scratch: At least :func:`scratch_size` float32, flat; overwritten.
    """
    h, w = field.shape
    r = weights.shape[0] // 2
    if r > 0:
        tall = scratch[: (h + 2 * r) * w]
        for i in range(h + 2 * r):
            _copy(tall[i * w : i * w + w], field[border_index(i - r, h, border)])
        _convolve(tall, field.reshape(-1), w, weights)
    smooth_rows(field, weights, border, scratch)


@njit(nogil=True)
def smooth_rows(field: Any, weights: Any, border: Any, scratch: Any) -> None:
    """Convolve every row of a plane with ``weights``, in place; see :func:`smooth_field`."""
    h, w = field.shape
    r = weights.shape[0] // 2
    if r == 0:
        return
    stride = w + 2 * r
    wide = scratch[: h * stride]
    result = scratch[h * stride : 2 * h * stride - 2 * r]
    for i in range(h):
        _copy(wide[i * stride + r : i * stride + r + w], field[i])
    for j in range(r):
        left, right = border_index(j - r, w, border), border_index(w + j, w, border)
        for i in range(h):
            wide[i * stride + j] = field[i, left]
            wide[i * stride + r + w + j] = field[i, right]
    _convolve(wide, result, 1, weights)
    for i in range(h):
        _copy(field[i], result[i * stride : i * stride + w])


@njit
def _convolve(source: Any, out: Any, step: Any, weights: Any) -> None:
    """``out[j]`` is the sum of ``weights[k] * source[j + k * step]``."""
    r = weights.shape[0] // 2
    for start in range(0, out.shape[0], _CHUNK):
        part = out[start : start + _CHUNK]
        centre = start + r * step
        _begin(part, source[centre:], weights[r])
        k = 1
        while k + 2 <= r:
            _add_three(part, source, centre, step, k, weights)
            k += 3
        while k <= r:
            _add_one(part, source, centre, step, k, weights)
            k += 1


@njit
def _copy(to: Any, row: Any) -> None:
    for j in range(to.shape[0]):
        to[j] = row[j]


@njit
def _begin(out: Any, row: Any, weight: Any) -> None:
    for j in range(out.shape[0]):
        out[j] = row[j] * weight


@njit
def _add_one(out: Any, source: Any, centre: Any, step: Any, k: Any, weights: Any) -> None:
    weight = weights[weights.shape[0] // 2 + k]
    before, after = source[centre - k * step :], source[centre + k * step :]
    for j in range(out.shape[0]):
        out[j] += (before[j] + after[j]) * weight


@njit
def _add_three(out: Any, source: Any, centre: Any, step: Any, k: Any, weights: Any) -> None:
    r = weights.shape[0] // 2
    w1, w2, w3 = weights[r + k], weights[r + k + 1], weights[r + k + 2]
    b1, a1 = source[centre - k * step :], source[centre + k * step :]
    b2, a2 = source[centre - (k + 1) * step :], source[centre + (k + 1) * step :]
    b3, a3 = source[centre - (k + 2) * step :], source[centre + (k + 2) * step :]
    for j in range(out.shape[0]):
        out[j] = out[j] + (b1[j] + a1[j]) * w1 + (b2[j] + a2[j]) * w2 + (b3[j] + a3[j]) * w3
