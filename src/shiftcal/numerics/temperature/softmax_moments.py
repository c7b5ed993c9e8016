"""Moments of scaled logits under their own softmax: the likelihood's value and derivatives."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Labels, Logits, Weights
from shiftcal.numerics._block_sums import SMALL, block_sums

_LN2 = math.log(2.0)


class Moments(NamedTuple):
    """Weighted means over rows, with ``x = beta * (z - max z)`` and expectations under softmax.

    The derivatives are by ``r`` in ``beta * (1 + r)`` at ``r = 0``. Being relative they stay the
    same when the logits are divided by what beta is multiplied with.

    Attributes:
        beta: The inverse temperature: the one asked for, rounded to the logits' precision.
        nll: Mean of ``log sum exp(x) - x[label]``.
        slope: Mean of ``E[x] - x[label]``.
        curvature: Mean of the variance of ``x``.
        third: Mean of the third central moment of ``x``.
        regret: Mean of ``-x[label]``: zero if every label is a maximum of its row.
    """

    beta: float
    nll: float
    slope: float
    curvature: float
    third: float
    regret: float


def softmax_moments(
    data: tuple[Logits, Labels, Weights | None], beta: float, *, every: int = 1
) -> Moments | None:
    """The moments at ``beta``; ``None`` if the rows looked at weigh nothing.

    Sums are in float64 and in an order of their own, so the result does not depend on how many
    threads there are.

    Args:
        data: ``(n, k)`` logits, ``(n,)`` labels, ``(n,)`` weights or ``None`` for ones.
        beta: Inverse temperature.
        every: Look at every such block of 128 rows only, for a first guess on large data.
    """
    b = data[0].dtype.type(beta / _LN2)
    if data[0].size < SMALL:
        sums = _sums(data, float(b))
    else:
        from shiftcal.numerics.temperature.softmax_kernels import moments

        sums = block_sums(moments, b, data, columns=6, every=every)
    total = sums[5]
    if total <= 0:
        return None
    log_sum, mean, variance, third, regret = (float(s / total) for s in sums[:5])
    beta = float(b) * _LN2
    return Moments(
        beta,
        nll=log_sum + beta * regret,
        slope=_LN2 * mean + beta * regret,
        curvature=_LN2**2 * variance,
        third=_LN2**3 * third,
        regret=beta * regret,
    )


def _sums(data: tuple[Logits, Labels, Weights | None], b: float) -> NDArray[np.float64]:
    """What the kernel computes, all rows at once."""
    logits, labels, weights = data
    z = logits.astype(np.float64)
    top = z.max(axis=1)
    regret = top - z[np.arange(len(z)), labels]
    t = np.maximum((z - top[:, None]) * b, -1000)  # 2**-1000 is nothing, its cube still finite
    p = np.exp2(t)
    total = p.sum(axis=1)
    p /= total[:, None]
    mean = np.einsum("ij,ij->i", p, t)
    t -= mean[:, None]
    variance = np.einsum("ij,ij,ij->i", p, t, t)
    third = np.einsum("ij,ij,ij,ij->i", p, t, t, t)
    ones = np.ones(len(z))
    w = ones if weights is None else weights
    return np.array([w @ s for s in (np.log(total), mean, variance, third, regret, ones)])
