"""The Brier score of scaled logits and its slope in the scale."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Labels, Logits, Weights
from shiftcal.numerics._block_sums import SMALL, block_sums

_LN2 = math.log(2.0)


class BrierSlope(NamedTuple):
    """Weighted means over rows.

    Attributes:
        score: Mean of ``sum over k of (p_k - [label = k])**2``.
        slope: Its derivative by the logarithm of beta.
    """

    score: float
    slope: float


def brier_slope(data: tuple[Logits, Labels, Weights | None], beta: float) -> BrierSlope:
    """Score and slope at ``beta``, the inverse temperature.

    Args:
        data: ``(n, k)`` logits, ``(n,)`` labels, ``(n,)`` weights or ``None`` for ones.
        beta: Inverse temperature.
    """
    b = data[0].dtype.type(beta / _LN2)
    if data[0].size < SMALL:
        sums = _sums(data, float(b))
    else:
        from shiftcal.numerics.temperature.brier_kernels import brier

        sums = block_sums(brier, b, data, columns=3)
    score, slope = (float(s / sums[2]) for s in sums[:2])
    return BrierSlope(score, 2 * _LN2 * slope)


def _sums(data: tuple[Logits, Labels, Weights | None], b: float) -> NDArray[np.float64]:
    """What the kernel computes, all rows at once."""
    logits, labels, weights = data
    z = logits.astype(np.float64)
    t = np.maximum((z - z.max(axis=1, keepdims=True)) * b, -1000)
    p = np.exp2(t)
    p /= p.sum(axis=1, keepdims=True)
    t -= np.einsum("ij,ij->i", p, t)[:, None]
    miss = p.copy()
    miss[np.arange(len(z)), labels] -= 1
    ones = np.ones(len(z))
    w = ones if weights is None else weights
    score, slope = np.einsum("ij,ij->i", miss, miss), np.einsum("ij,ij,ij->i", miss, p, t)
    return np.array([w @ s for s in (score, slope, ones)])
