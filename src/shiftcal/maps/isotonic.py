"""Isotonic regression of correctness on confidence."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Weights
from shiftcal.maps._top1 import Top1, rounded_confidence


@final
class Isotonic(Top1):
    """Isotonic regression on the confidence of the predicted class.

    ``c' = f(c)`` with the non-decreasing ``f`` of least ``sum w_i (f(c_i) - r_i)^2``, ``r`` being
    1 where the prediction is right and 0 where it is wrong; linear between the confidences seen,
    constant beyond them. A step function on few rows, and exactly 0 or 1 at its ends more often
    than not. Never changes which class is predicted. (Zadrozny and Elkan 2002)

    Args:
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        confidence_: ``(m,)`` confidences at which ``f`` is known, ascending.
        accuracy_: ``(m,)`` ``f`` there.
    """

    confidence_: NDArray[np.float64]
    accuracy_: NDArray[np.float64]

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _learn(
        self, log_odds: NDArray[np.float64], correct: NDArray[np.float64], weights: Weights
    ) -> None:
        from sklearn.isotonic import IsotonicRegression

        curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        curve.fit(rounded_confidence(log_odds), correct, sample_weight=weights)
        self.confidence_ = np.asarray(curve.X_thresholds_, dtype=np.float64)
        self.accuracy_ = np.asarray(curve.y_thresholds_, dtype=np.float64)

    def _calibrate(self, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.interp(rounded_confidence(log_odds), self.confidence_, self.accuracy_)
