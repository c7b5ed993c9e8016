"""The likelihood at every temperature, from moments at a ladder of them.

With ``u = log beta`` and ``x = beta (z - max z)``, the mean negative log-likelihood has the slope
``g(u) = a(u) + R e^u``, where ``a`` is the mean of ``E[x]`` and ``R`` that of ``max z - z[label]``.
``a`` is bounded and smooth. Its derivatives are ``a' = E + V`` and ``a'' = E + 3V + M`` with the
means E, V and M of the first three central moments, so that between two neighbours of the ladder
it is a polynomial of the fifth degree that fits all three at both. Steps are ``log(2) / 8``: what
is left is below ``(log(2) / 16)^6 / 720``, 9e-12, times the sixth derivative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Logits
from shiftcal.numerics._jit import to_read
from shiftcal.numerics._threads import in_parts

LANES = 8
OCTAVES = 14
# Inverse temperatures from 1/128 to 117: more than any range of temperatures in use.
BETAS = 2.0 ** (np.arange(OCTAVES * LANES) / LANES - OCTAVES // 2)
# Moments are summed as whole multiples of 2**-44. None is above 2**12 with a million classes, so
# that sixty-four of them fit into 64 bits.
FRACTION_BITS = 44
_STEP = math.log(2.0) / LANES
_FIRST = math.log(BETAS[0])
# Logits worth a part of their own.
_PART = 1 << 15


def ladder_sums(
    logits: Logits,
) -> tuple[list[int], NDArray[np.float64], NDArray[np.float64]]:
    """Sums over rows of the first three central moments at every inverse temperature.

    Returns:
        The sums in units of ``2**-44``, moment after moment; for each row ``log sum exp(z - max
        z)``, and the sum of the squares of its softmax.
    """
    from shiftcal.numerics.temperature.ladder_kernels import ladder_sums as kernel

    z = to_read(logits)
    log_sums, squares = np.empty(len(z)), np.empty(len(z))
    found: list[NDArray[np.int64]] = []

    def work(start: int, stop: int) -> None:
        sums = np.zeros((2, 3, OCTAVES, LANES), np.int64)
        part = slice(start, stop)
        kernel(z[part], sums[0], sums[1], log_sums[part], squares[part])
        found.append(sums)

    in_parts(work, len(z), least=-(-_PART // z.shape[1]))
    high, low = sum(found).reshape(2, -1).tolist()  # type: ignore[union-attr]
    return [(h << 32) + x for h, x in zip(high, low, strict=True)], log_sums, squares


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Mean negative log-likelihood as a function of the inverse temperature.

    Attributes:
        moments: ``(3, m)`` means of the first three central moments at ``BETAS``.
        regret: Mean of ``max z - z[label]``.
        at_one: The likelihood at temperature one.
    """

    moments: NDArray[np.float64]
    regret: float
    at_one: float

    def slope(self, beta: float) -> float:
        """Its derivative by ``log beta``."""
        piece, t = self._where(beta)
        return float(np.polyval(self._piece(piece)[::-1], t)) + self.regret * beta

    def nll(self, beta: float) -> float:
        """Its value: the slope, integrated from temperature one on."""
        one, last = OCTAVES // 2 * LANES, len(BETAS) - 2
        piece, t = self._where(beta)
        sign = 1 if beta >= 1 else -1
        whole = [
            self._integral(j, 1.0) for j in range(min(piece, one), min(max(piece, one), last + 1))
        ]
        change = sign * math.fsum(whole) + self._integral(piece, t)
        return self.at_one + change + self.regret * (beta - 1)

    def minimum(self, ends: tuple[float, float]) -> float | None:
        """The inverse temperature of no slope between ``ends``; ``None`` if there is none.

        The likelihood is convex in the inverse temperature: there is one sign change at most.
        """
        low, high = ends
        if self.slope(low) >= 0 or self.slope(high) <= 0:
            return None
        for _ in range(80):
            middle = math.sqrt(low * high)
            if not low < middle < high:
                break
            low, high = (middle, high) if self.slope(middle) < 0 else (low, middle)
        return math.sqrt(low * high)

    def _where(self, beta: float) -> tuple[int, float]:
        at = (math.log(beta) - _FIRST) / _STEP
        piece = min(max(int(at), 0), len(BETAS) - 2)
        return piece, at - piece

    def _integral(self, piece: int, t: float) -> float:
        powers = np.arange(1, 7)
        return _STEP * float(np.sum(self._piece(piece) * t**powers / powers))

    def _piece(self, j: int) -> NDArray[np.float64]:
        """Coefficients in rising order of the polynomial between two neighbours."""
        mean, variance, third = self.moments[:, j : j + 2]
        (a0, a1), first = mean, _STEP * (mean + variance)
        second = _STEP**2 * (mean + 3 * variance + third)
        rise = a1 - a0 - first[0] - second[0] / 2
        turn = first[1] - first[0] - second[0]
        bend = second[1] - second[0]
        return np.array(
            [
                a0,
                first[0],
                second[0] / 2,
                10 * rise - 4 * turn + bend / 2,
                -15 * rise + 7 * turn - bend,
                6 * rise - 3 * turn + bend / 2,
            ]
        )
