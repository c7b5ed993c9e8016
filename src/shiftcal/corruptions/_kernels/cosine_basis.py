"""Few cosines for what a wide Gaussian leaves of a field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

BLOCK = 8


@dataclass(frozen=True)
class Axis:
    """Smoothing along an axis of ``n`` points mirrored at its ends, exact and by ``k`` cosines.

    With symmetric weights it is diagonal in the cosines ``c_f(j) = cos(pi f (j + 1/2) / n)``, and
    if the weights are wide the factors of all but the first few are small.

    Attributes:
        weights: ``(2 r + 1,)``, the exact smoothing; folded so that ``r <= n``.
        cosines: ``(rows, k)`` orthonormal columns, with zero rows up to a multiple of 8.
        scaled: ``(n, k)`` the same columns times their factors.
    """

    weights: NDArray[np.float32]
    cosines: NDArray[np.float32]
    scaled: NDArray[np.float32]


def fold_weights(weights: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """Weights with a radius of ``n`` at most that do the same to ``n`` points mirrored.

    The mirrored points repeat after ``2 n``, so weights that far apart meet the same point.
    """
    radius = len(weights) // 2
    if radius <= n:
        return weights
    offsets = np.arange(-radius, radius + 1) % (2 * n)
    whole = np.bincount(offsets, weights.astype(np.float64), minlength=2 * n)
    half = np.append(whole[:n], whole[n] / 2)
    return np.concatenate([half[:0:-1], half]).astype(np.float32)


def cosines_needed(weights: NDArray[np.float32], n: int, *, rest: float) -> int:
    """So many cosines that the share of the others is ``rest`` at most; one at least.

    The share is the mean square that they have in smoothed white noise of variance 1.
    """
    left_out = np.cumsum((_factors(fold_weights(weights, n), n) ** 2)[::-1])[::-1] / n
    return max(1, int(np.count_nonzero(left_out > rest)))


def axis_of(weights: NDArray[np.float32], n: int, *, k: int) -> Axis:
    """The smoothing of ``n`` points, with ``k`` cosines. Takes memory for ``n k`` numbers."""
    folded = fold_weights(weights, n)
    factors = _factors(folded, n)
    cosines = fft.idct(np.eye(k, n), type=2, norm="ortho", axis=1).T
    padded = np.zeros((-(-n // BLOCK) * BLOCK, k), np.float32)
    padded[:n] = cosines
    return Axis(folded, padded, np.ascontiguousarray(cosines * factors[:k], np.float32))


def _factors(folded: NDArray[np.float32], n: int) -> NDArray[np.float64]:
    """What the smoothing multiplies each of the ``n`` cosines by."""
    half = np.zeros(n + 1)
    right = folded[len(folded) // 2 :]
    half[: len(right)] = right
    half[n] *= 2
    factors: NDArray[np.float64] = fft.dct(half, type=1)[:n]
    return factors
