"""How far every group is to be believed: a random-effects model of mean confidences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats


class Spread(NamedTuple):
    """How much confidences differ within groups, and groups from one another.

    Attributes:
        within: Variance of the rows of a group, pooled; ``None`` if no group has two rows.
        between: Variance of the groups' true means.
    """

    within: float | None
    between: float

    def weights(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """``n τ² / (n τ² + s²)`` for every group, from 0 (no more than noise) to 1."""
        if self.within is None or self.between == 0:
            return np.zeros(len(rows))
        own = rows * self.between
        return np.asarray(own / (own + self.within))


def spread_of(confidence: Floats, codes: NDArray[np.intp], rows: NDArray[np.intp]) -> Spread:
    """Variances of a one-way random-effects model, ``c_gi = μ + u_g + e_gi``.

    Args:
        confidence: ``(n,)``.
        codes: ``(n,)`` the number of every row's group.
        rows: ``(g,)`` rows of every group, all positive.
    """
    n, g = len(codes), len(rows)
    means = np.bincount(codes, weights=confidence, minlength=g) / rows
    if g == n:
        return Spread(None, 0.0)
    within = float(np.square(confidence - means[codes]).sum() / (n - g))
    return Spread(within, between_variance(means, within / rows))


def between_variance(values: Floats, variances: Floats) -> float:
    """The variance ``τ²`` of true values, of which noisy ones are seen: Paule and Mandel's.

    It solves ``Σ_g (y_g − ȳ)² / (τ² + v_g) = G − 1`` with ``ȳ`` the mean weighted by
    ``1 / (τ² + v_g)``: with it the values differ as much as they are expected to. Where they
    differ by less than the noise alone explains, it is 0. (Paule and Mandel 1982)

    Args:
        values: ``(g,)``.
        variances: ``(g,)`` of their noise, none negative.
    """
    if len(values) < 2:
        return 0.0
    # The equation has its root below, since the weighted mean makes the sum least of all.
    most = float(np.var(values, ddof=1))
    if not variances.all():
        return most
    if most == 0 or _excess(0.0, values, variances) <= 0:
        return 0.0
    from scipy.optimize import brentq

    return float(brentq(_excess, 0.0, most, args=(values, variances), xtol=1e-15, rtol=1e-12))


def _excess(between: float, values: Floats, variances: Floats) -> float:
    weights = 1 / (between + variances)
    centre = weights @ values / weights.sum()
    return float(weights @ np.square(values - centre)) - (len(values) - 1)
