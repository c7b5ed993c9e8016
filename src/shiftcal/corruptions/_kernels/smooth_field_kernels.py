"""Smoothing of a random field by symmetric weights. Imports numba: import it in functions."""

from __future__ import annotations

from typing import Any

from numba import njit

NEAREST = 0
REFLECT = 1


@njit(inline="always")
def border_index(i: Any, n: Any, border: Any) -> Any:
    """The index in ``0 .. n - 1`` that stands for ``i``, which may be any whole number.

    Border 0 repeats the last value (``a a | a b c | c c``), 1 mirrors with it (``b a | a b c |
    c b``) as often as it takes: what ``scipy.ndimage`` calls nearest and reflect.
    """
    if border == REFLECT:
        i = i % (2 * n)
        return min(i, 2 * n - 1 - i)
    return min(max(i, 0), n - 1)


def scratch_size(height: int, width: int, taps: int) -> int:
    """How many float32 :func:`smooth_field` needs to work in."""
    return height * width + width + taps - 1


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
    middle = scratch[: h * w].reshape((h, w))
    line = scratch[h * w : h * w + w + 2 * r]
    for i in range(h):
        _scale(middle[i], field[i], weights[r])
        for k in range(1, r, 2):
            _add_four(
                middle[i],
                field[border_index(i - k, h, border)],
                field[border_index(i + k, h, border)],
                weights[r + k],
                field[border_index(i - k - 1, h, border)],
                field[border_index(i + k + 1, h, border)],
                weights[r + k + 1],
            )
        if r % 2 == 1:
            above, below = border_index(i - r, h, border), border_index(i + r, h, border)
            _add_two(middle[i], field[above], field[below], weights[2 * r])
    for i in range(h):
        for j in range(r):
            line[j] = middle[i, border_index(j - r, w, border)]
            line[r + w + j] = middle[i, border_index(w + j, w, border)]
        line[r : r + w] = middle[i]
        _scale(field[i], middle[i], weights[r])
        for k in range(1, r, 2):
            _add_four(
                field[i],
                line[r - k : r - k + w],
                line[r + k : r + k + w],
                weights[r + k],
                line[r - k - 1 : r - k - 1 + w],
                line[r + k + 1 : r + k + 1 + w],
                weights[r + k + 1],
            )
        if r % 2 == 1:
            _add_two(field[i], line[:w], line[2 * r : 2 * r + w], weights[2 * r])


@njit
def _scale(out: Any, row: Any, weight: Any) -> None:
    for j in range(out.shape[0]):
        out[j] = row[j] * weight


@njit
def _add_two(out: Any, before: Any, after: Any, weight: Any) -> None:
    for j in range(out.shape[0]):
        out[j] += (before[j] + after[j]) * weight


@njit
def _add_four(out: Any, b1: Any, a1: Any, w1: Any, b2: Any, a2: Any, w2: Any) -> None:
    for j in range(out.shape[0]):
        out[j] = out[j] + (b1[j] + a1[j]) * w1 + (b2[j] + a2[j]) * w2
