"""Normal deviates, Gaussian weights, lines and enlargements that several corruptions share."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray


@functools.cache
def normal_medians(mass: float, cells: int) -> NDArray[np.float64]:
    """``|z|`` at the middle of cells that share a tail of ``mass`` equally, rising; read-only."""
    # Imported in a tenth of the time that scipy.special takes.
    from statistics import NormalDist

    below = mass * (np.arange(cells, 0, -1) - 0.5) / cells
    medians = -np.array([*map(NormalDist().inv_cdf, below.tolist())])
    medians.flags.writeable = False
    return medians


def gaussian_weights(sigma: float, truncate: float) -> NDArray[np.float32]:
    """Weights ``exp(-k**2 / (2 sigma**2))`` for ``|k| <= r``, with sum 1; ``(2 r + 1,)``.

    The radius is ``r = int(truncate * sigma + 1/2)``, as in ``scipy.ndimage``; they are normalised
    in double precision. With ``sigma`` 0 there is one weight, 1.
    """
    if sigma <= 0:
        return np.ones(1, np.float32)
    radius = int(truncate * sigma + 0.5)
    weights = np.exp(-0.5 / (sigma * sigma) * np.arange(-radius, radius + 1) ** 2)
    return (weights / weights.sum()).astype(np.float32)


# --------------------------------------------------------------------------------------
# The line along which motion blurs: its weights, and its pixels at every angle.
# --------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------
# Enlarging the middle of an axis: which source positions its pixels read.
# --------------------------------------------------------------------------------------


def crop_length(length: int, factor: float) -> int:
    """How many pixels in the middle of ``length`` fill it when enlarged by ``factor``."""
    return math.ceil(length / factor)


def zoom_axis(length: int, factor: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Where each of ``length`` pixels reads in the cut-out middle: ``(1 - t) v[i] + t v[i + 1]``.

    The middle ``c = ceil(length / factor)`` pixels become ``round(c factor)``, first pixel on first
    and last on last (position ``k (c - 1) / (round(c factor) - 1)``, as scipy's ``zoom`` has it),
    of which the middle ``length`` stay.

    Returns:
        The indices ``i`` and the weights ``t``, each ``(length,)``; ``i`` counts from the start of
        the cut-out, which begins at pixel ``(length - c) // 2``.
    """
    cut = crop_length(length, factor)
    enlarged = round(cut * factor)
    trim = (enlarged - length) // 2
    position = (np.arange(length) + trim) * ((cut - 1) / (enlarged - 1))
    index = np.minimum(np.floor(position).astype(np.int64), cut - 2)
    return index, np.minimum(position - index, 1.0)
