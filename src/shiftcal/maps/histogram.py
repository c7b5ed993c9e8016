"""Histogram binning of the confidence."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count
from shiftcal._types import Weights
from shiftcal.maps._top1 import Top1, rounded_confidence
from shiftcal.numerics.binning.weighted import distinct, equal_weight_bins


@final
class Histogram(Top1):
    """Histogram binning of the confidence of the predicted class, in bins of equal size.

    ``c' = accuracy of the bin that c falls into``. Bins hold equal numbers of rows (equal
    weights), give or take one; rows of equal confidence are never parted; edges lie midway
    between the confidences on their two sides, and an edge belongs to the bin below. There is no
    smoothing of the accuracies: added counts would make the scale of the weights matter. Never
    changes which class is predicted. (Zadrozny and Elkan 2001)

    Args:
        n_bins: Most bins there may be; fewer if there are fewer distinct confidences.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        edges_: ``(m - 1,)`` edges between the bins, ascending.
        accuracy_: ``(m,)`` accuracy of each bin.
    """

    edges_: NDArray[np.float64]
    accuracy_: NDArray[np.float64]

    def __init__(self, *, n_bins: int = 15, input: str = "logits") -> None:
        self.n_bins = n_bins
        self.input = input

    def _learn(
        self, log_odds: NDArray[np.float64], correct: NDArray[np.float64], weights: Weights
    ) -> None:
        n_bins = check_count(self.n_bins, name="n_bins")
        groups = distinct(rounded_confidence(log_odds), correct, weights)
        self.edges_, self.accuracy_ = equal_weight_bins(groups, n_bins)

    def _calibrate(self, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
        bins = np.searchsorted(self.edges_, rounded_confidence(log_odds), side="left")
        return np.clip(self.accuracy_[bins], 0.0, 1.0)
