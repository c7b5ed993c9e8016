"""The area under the risk-coverage curve, from sums over groups of equal confidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftcal.numerics.binning.groups import Groups


def area_under_risk(groups: Groups) -> float:
    """``1/n sum_{i=1}^n (errors among the i most confident rows) / i``.

    Inside a group of equal confidence it is the expected value over all orders of its rows: after
    ``a`` rows with ``E`` errors, a group of ``m`` rows with error rate ``q`` adds
    ``sum_{j=1}^m (E + q j) / (a + j) = q m + (E - q a)(H(a + m) - H(a))``, where ``H`` are the
    harmonic numbers.
    """
    count = groups.count[::-1].astype(np.float64)
    errors = count - groups.correct[::-1]
    rate = errors / count
    before = np.cumsum(count) - count
    errors_before = np.cumsum(errors) - errors
    area = rate * count + (errors_before - rate * before) * _harmonic_step(before, count)
    return float(area.sum() / count.sum())


def _harmonic_step(a: NDArray[np.float64], m: NDArray[np.float64]) -> NDArray[np.float64]:
    """``1/(a + 1) + ... + 1/(a + m)``."""
    step = 1.0 / (a + 1.0)
    several = m > 1
    if several.any():
        from scipy.special import digamma

        a, m = a[several], m[several]
        step[several] = digamma(a + m + 1.0) - digamma(a + 1.0)
    return step
