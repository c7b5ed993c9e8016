"""Weighted sums of shifted rows. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# An unsigned index is used as it is; a signed one is asked at every step whether it is negative.
Index = np.uint64


@njit(nogil=True)
def line_row(total: Any, plane: Any, starts: Any, weights: Any) -> None:
    """Add ``sum over t of weights[t] * plane[starts[t] + j]`` to ``total[j]``, for every ``j``.

    Args:
        total: ``(n,)`` float32.
        plane: Flat float32.
        starts: ``(taps,)`` uint64.
        weights: ``(taps,)`` float32; taps is a multiple of four.
    """
    taps = weights.shape[0]
    done = 0
    while taps - done >= 8:
        _add_eight(total, plane, starts[done : done + 8], weights[done : done + 8])
        done += 8
    if done < taps:
        _add_four(total, plane, starts[done : done + 4], weights[done : done + 4])


@njit
def _add_eight(total: Any, plane: Any, s: Any, w: Any) -> None:
    s0, s1, s2, s3, s4, s5, s6, s7 = s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
    w0, w1, w2, w3, w4, w5, w6, w7 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    for k in range(total.shape[0]):
        j = Index(k)
        first = (w0 * plane[s0 + j] + w1 * plane[s1 + j]) + (
            w2 * plane[s2 + j] + w3 * plane[s3 + j]
        )
        second = (w4 * plane[s4 + j] + w5 * plane[s5 + j]) + (
            w6 * plane[s6 + j] + w7 * plane[s7 + j]
        )
        total[j] += first + second


@njit
def _add_four(total: Any, plane: Any, s: Any, w: Any) -> None:
    s0, s1, s2, s3 = s[0], s[1], s[2], s[3]
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for k in range(total.shape[0]):
        j = Index(k)
        total[j] += (w0 * plane[s0 + j] + w1 * plane[s1 + j]) + (
            w2 * plane[s2 + j] + w3 * plane[s3 + j]
        )


@njit(nogil=True)
def line_starts(starts: Any, dx: Any, dy: Any, y: Any, shape: Any) -> None:
    """Where row ``y`` shifted by each tap begins in the flat plane; rows stop at the borders.

    Args:
        starts: ``(taps,)`` uint64, written.
        dx: ``(taps,)`` steps to the right, in pixels.
        dy: ``(taps,)`` steps downwards, in pixels.
        y: The row.
        shape: Height, values in a padded row, where the first row's first pixel is in the plane
            (which may begin further down: then it is before its start), values in a pixel.
    """
    height, stride, origin, values = shape
    for t in range(starts.shape[0]):
        row = min(max(y + dy[t], 0), height - 1)
        starts[t] = Index(row * stride + origin + dx[t] * values)
