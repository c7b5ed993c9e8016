"""Smooth calibration error (Błasiok and Nakkiran, 2023), on a grid.

Residuals ``(c_i - r_i) / n`` are masses at the points ``c_i``. Smoothing them with a Gaussian that
is reflected at 0 and 1 gives a density ``s_σ``, and ``smECE_σ = ∫ |s_σ|``. It falls as ``σ`` grows,
so there is one ``σ`` with ``smECE_σ = σ``: that is the smooth calibration error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Grid points per bandwidth: the grid then widens the kernel by less than 1 part in 10,000.
_POINTS_PER_SIGMA = 64
_FIRST_GRID = 1 << 12
_LAST_GRID = 1 << 20
# Rows handled in one go, so that they stay in the processor's cache.
_BLOCK = 1 << 14


def smooth_error(location: NDArray[Any], residual: NDArray[np.float64]) -> float:
    """The fixed point ``σ = smECE_σ`` for masses ``residual`` at points ``location``.

    Args:
        location: ``(m,)`` points in [0, 1].
        residual: ``(m,)`` masses: ``(c - r) / n`` per row, or their sums over rows that are near.
    """
    m = _FIRST_GRID
    while True:
        sigma = _fixed_point(deposit(location, residual, m))
        if sigma * m >= _POINTS_PER_SIGMA or m >= _LAST_GRID or sigma == 0.0:
            return sigma
        wanted = _POINTS_PER_SIGMA / sigma if sigma > 0 else _LAST_GRID
        m = min(_LAST_GRID, max(2 * m, 1 << int(np.ceil(np.log2(wanted)))))


def deposit(location: NDArray[Any], mass: NDArray[np.float64], m: int) -> NDArray[np.float64]:
    """Masses on the grid ``(j + 1/2) / m``, each shared linearly by its two neighbours.

    What lies outside the outermost points goes to them whole, as its mirror image would.
    """
    grid = np.zeros(m + 1)  # the point past the last only ever gets a share of zero
    for start in range(0, len(location), _BLOCK):
        position = location[start : start + _BLOCK].astype(np.float64)
        position *= m
        position -= 0.5
        np.clip(position, 0, m - 1, out=position)
        left = position.astype(np.intp)
        here = mass[start : start + _BLOCK]
        share = (position - left) * here
        np.add.at(grid, left, here - share)
        np.add.at(grid, left + 1, share)
    return grid[:m]


def _fixed_point(grid: NDArray[np.float64]) -> float:
    """``σ`` with ``sum |reflected Gaussian_σ * grid| = σ``."""
    from scipy.fft import dct, idct
    from scipy.optimize import brentq

    # On functions reflected at both ends a Gaussian acts on each cosine by itself.
    cosines = dct(grid, type=2)
    decay = -0.5 * (np.pi * np.arange(len(grid))) ** 2

    def excess(sigma: float) -> float:
        smoothed = idct(cosines * np.exp(decay * sigma**2), type=2)
        return float(np.abs(smoothed).sum()) - sigma

    at_one = excess(1.0)
    if at_one >= 0:  # every row as wrong as can be
        return 1.0
    if float(np.abs(grid).sum()) == 0.0:
        return 0.0
    return float(brentq(excess, 0.0, 1.0, xtol=1e-10, rtol=1e-10))
