"""The line along which motion blurs: its weights, and its pixels at every angle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ANGLES = 4096  # equally likely steps of the quarter turn; the longest line ends 0.02 pixels apart
GROUP = 4  # taps are summed four at a time
_TAIL = 1e-5  # of the weight may be cut off: 0.003 grey levels at the most


def line_weights(radius: int, sigma: float) -> NDArray[np.float32]:
    """Half a Gaussian ``exp(-i**2 / (2 sigma**2))``, ``i = 0 ... 2 radius``, of sum 1.

    The end of which less than 1e-5 of the sum is left is cut off, and zeros fill up a group.
    """
    weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    left = np.cumsum(weights[::-1])[::-1] / weights.sum()
    kept = weights[left >= _TAIL]
    filled = np.zeros(-(-len(kept) // GROUP) * GROUP, np.float32)
    filled[: len(kept)] = kept / kept.sum()
    return filled


def line_steps(taps: int, start: float) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Pixel steps ``dx, dy`` ``(ANGLES, taps)`` of lines at angles between ``start`` and 90 more.

    Tap ``i`` at angle ``a`` is the pixel at ``ceil(i cos a - 1/2), ceil(i sin a - 1/2)``. The
    angles are the middles of the steps, in degrees, downwards from the right. No coordinate comes
    near enough to a half for another library's sine to round it otherwise.
    """
    angles = np.deg2rad(start + 90 * (np.arange(ANGLES) + 0.5) / ANGLES)[:, None]
    steps = np.arange(taps)
    dx = np.ceil(steps * np.cos(angles) - 0.5).astype(np.int32)
    dy = np.ceil(steps * np.sin(angles) - 0.5).astype(np.int32)
    return dx, dy
