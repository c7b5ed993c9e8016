"""Symmetric smoothing kernels in 16-bit fixed point, and where an image goes on beyond its edges.

Grey levels are held as multiples of 1/128, sums of the kernel as multiples of 1/256: the sum of
two values, and the result, then just fit 16 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ONE = 1 << 16
RUN = 2048  # sums that are kept in the first-level cache while terms are added to them


class Smoothing(NamedTuple):
    """What a separable smoothing of images of one size needs.

    Attributes:
        weights: ``(r + 1,)`` uint16, from the centre outwards, with sum ``2**16``; that of the
            centre is in units of ``2**-16``, those of the pairs in units of ``2**-17``.
        biases: ``(2,)`` uint16: what is added to the sums of the columns and of the rows.
        rows: ``(h + 2 r,)`` int64, the image's row that stands at each row of the padded one.
        places: ``(3 (w + 2 r),)`` int64, the place in a padded row that its values come from.
    """

    weights: NDArray[np.uint16]
    biases: NDArray[np.uint16]
    rows: NDArray[np.int64]
    places: NDArray[np.int64]


def smoothing(
    half: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> Smoothing:
    """The plan for a kernel given from its centre outwards, ``(r + 1,)``, of sum 1.

    Every product is cut to a whole number, half a unit in the mean, which the biases give back.
    They are set so that an image of one colour keeps it.
    """
    weights = np.rint(half * np.where(np.arange(len(half)) == 0, ONE, 2 * ONE)).astype(np.int64)
    weights[0] = min(weights[0] + ONE - weights.sum(), ONE - 1)
    lost = (len(weights) + 1) // 2
    flat = 128 * np.arange(256)
    middle = (_flat_sum(flat, weights) + lost) >> 1
    sums = _flat_sum(middle, weights)
    needed = int((2 * flat - sums).max())
    biases = np.array([lost, max(lost, needed)], np.uint16)
    places = places_in_row(columns, len(half) - 1)
    return Smoothing(weights.astype(np.uint16), biases, rows, places)


def _flat_sum(values: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return ((2 * values[:, None] * weights) >> 16).sum(axis=1)


def nearest(length: int, radius: int) -> NDArray[np.int64]:
    """Indices of a padded side: beyond an edge, its last pixel goes on."""
    return np.clip(np.arange(-radius, length + radius), 0, length - 1)


def mirrored(length: int, radius: int) -> NDArray[np.int64]:
    """Indices of a padded side: beyond an edge, the image is reflected about its last pixel."""
    period = 2 * length - 2
    folded = np.abs(np.arange(-radius, length + radius)) % period
    return np.minimum(folded, period - folded)


def places_in_row(columns: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
    """Where in a padded row the values of its pixels are found, for the margins to be filled.

    Args:
        columns: ``(w + 2 radius,)``, the image's column for each column of the padded one.
        radius: The width of a margin in pixels.
    """
    return (3 * (columns + radius)[:, None] + np.arange(3)).ravel()


class Neighbours(NamedTuple):
    """What a symmetric kernel of three by three pixels needs.

    Attributes:
        weights: ``(2,)`` int32, of a nearest and of a diagonal neighbour, in units of ``2**-22``.
        rows: ``(h + 2,)`` int64, the image's row that stands at each row of the padded one.
        columns: ``(w + 2,)`` int64, likewise.
    """

    weights: NDArray[np.int32]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]


def neighbours(
    edge: float, corner: float, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> Neighbours:
    """The plan for a kernel of sum 1 by its weights off the centre."""
    return Neighbours(np.rint(np.array([edge, corner]) * 2.0**22).astype(np.int32), rows, columns)
