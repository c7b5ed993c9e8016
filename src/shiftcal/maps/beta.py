"""Beta calibration of the confidence."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from shiftcal._checks import check_not_negative
from shiftcal._types import FitStatus, Weights
from shiftcal.maps._top1 import Top1
from shiftcal.numerics.top1.beta import beta_log_odds, solve_beta

# Log-odds of 1 - 1e-12: no set is large enough to tell confidences above it apart, and a single
# error among them would outweigh all other rows.
FARTHEST = float(np.log(1e12))


@final
class Beta(Top1):
    """Beta calibration of the confidence of the predicted class.

    ``c' = 1 / (1 + exp(-(a log c - b log(1 - c) + m)))`` of greatest likelihood of the predictions
    being right, with ``a, b >= 0`` so that ``c'`` never falls as ``c`` rises; ``a = b = 1, m = 0``
    is the identity. ``c`` is taken as ``1 - 1e-12`` at the most. Never changes which class is
    predicted. (Kull, Silva Filho and Flach 2017)

    Args:
        ridge: ``ridge * ((a - 1)^2 + (b - 1)^2 + m^2)`` is added to the mean negative
            log-likelihood, so that there is one optimum and it is finite on any set.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        a_: Weight of ``log c``.
        b_: Weight of ``-log(1 - c)``.
        m_: Intercept.
    """

    a_: float
    b_: float
    m_: float

    def __init__(self, *, ridge: float = 1e-6, input: str = "logits") -> None:
        self.ridge = ridge
        self.input = input

    def _learn(
        self, log_odds: NDArray[np.float64], correct: NDArray[np.float64], weights: Weights
    ) -> None:
        ridge = check_not_negative(self.ridge, name="ridge")
        found = solve_beta(np.minimum(log_odds, FARTHEST), correct, weights, ridge=ridge)
        self.a_, self.b_, self.m_ = found.a, found.b, found.m
        if not found.converged:
            self.status_ = FitStatus(
                "not-converged",
                "the beta curve has no optimum on this set, as the confidences of right and wrong "
                "predictions do not overlap; use a larger set, or a ridge above 0.",
            )

    def _calibrate(self, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
        odds = beta_log_odds(np.minimum(log_odds, FARTHEST), self.a_, self.b_, self.m_)
        return np.asarray(expit(odds), dtype=np.float64)
