"""Calibration by splines."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count
from shiftcal._types import Weights
from shiftcal.maps._top1 import Top1, rounded_confidence
from shiftcal.numerics.binning.weighted import distinct
from shiftcal.numerics.top1.cumulative_spline import smoothed_means


@final
class Spline(Top1):
    """Spline calibration of the confidence of the predicted class.

    ``c' = c + d'(t(c))`` clipped to [0, 1], where ``t(c)`` is the fraction of the fitting set (by
    weight) with confidence up to ``c``, and ``d`` the natural cubic spline nearest in least
    squares to ``D(t)``, the sum of ``r - c`` over that fraction, ``r`` being 1 where the
    prediction is right and 0 where it is wrong. For rows of equal confidence ``d'`` is averaged
    over their part of ``t``; between confidences seen ``c'`` is linear, beyond them constant. As
    published it need not rise with ``c``. Keeps two numbers for every distinct confidence it was
    fitted on. Never changes which class is predicted. (Gupta et al. 2021)

    Args:
        n_knots: Knots of ``d``, equally spaced from 0 to 1; 2 add a constant to all confidences.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        confidence_: ``(m,)`` distinct confidences of the fitting set, ascending.
        accuracy_: ``(m,)`` ``c'`` there.
    """

    confidence_: NDArray[np.float64]
    accuracy_: NDArray[np.float64]

    def __init__(self, *, n_knots: int = 6, input: str = "logits") -> None:
        self.n_knots = n_knots
        self.input = input

    def _learn(
        self, log_odds: NDArray[np.float64], correct: NDArray[np.float64], weights: Weights
    ) -> None:
        n_knots = check_count(self.n_knots, name="n_knots", least=2)
        groups = distinct(rounded_confidence(log_odds), correct, weights)
        self.confidence_ = groups.value
        missing = groups.correct - groups.weight * groups.value
        added = smoothed_means(groups.weight, missing, n_knots)
        self.accuracy_ = np.clip(groups.value + added, 0.0, 1.0)

    def _calibrate(self, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.interp(rounded_confidence(log_odds), self.confidence_, self.accuracy_)
