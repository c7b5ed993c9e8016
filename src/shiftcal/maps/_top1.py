"""What maps on the confidence of the predicted class share."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from shiftcal._types import FitStatus, Labels, Logits, Probs, Weights
from shiftcal.maps.base import Map
from shiftcal.numerics.top1.odds import top1_log_odds
from shiftcal.numerics.top1.rows import rows_with_top1

Array = NDArray[np.float64]


class Top1(Map):
    """A map ``c -> c'`` of the confidence ``c`` of the predicted class, made into whole rows.

    The predicted class (the first largest logit) gets ``c'``; the others share ``1 - c'`` in
    proportion to the model's probabilities, none coming nearer to ``c'`` than ``c' * 1e-6``. So
    the predicted class never changes, and the largest probability of a row is ``c'``, except
    where ``c'`` is below about ``1 / k``, which the largest of ``k`` probabilities cannot be: it
    is raised to ``1 / (1 + (k - 1) * (1 - 1e-6))``.

    A subclass learns the map from log-odds ``log(c / (1 - c))``, which unlike ``c`` keep their
    digits when ``c`` is nearly one.
    """

    preserves_accuracy: ClassVar[bool] = True

    @final
    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        log_odds = top1_log_odds(logits)
        correct = (logits.argmax(axis=1) == labels).astype(np.float64)
        if weights is None:
            weights = np.ones(len(correct))
        kept = weights > 0
        self.status_ = _one_sided(correct[kept])
        self._learn(log_odds[kept], correct[kept], weights[kept] / weights.max())

    @final
    def _apply(self, logits: Logits) -> Probs:
        return rows_with_top1(logits, self._calibrate(top1_log_odds(logits)))

    @abstractmethod
    def _learn(self, log_odds: Array, correct: Array, weights: Weights) -> None:
        """Learn from ``(n,)`` log-odds, zeros and ones, and positive weights."""

    @abstractmethod
    def _calibrate(self, log_odds: Array) -> Array:
        """Calibrated confidences in [0, 1] for ``(n,)`` log-odds."""


def rounded_confidence(log_odds: Array) -> Array:
    """Confidences to 12 decimals.

    Their last bits depend on the order of the classes and on a constant added to the row; rounded
    off, they decide neither what is a tie nor on which side of an edge a row falls.
    """
    return np.round(expit(log_odds), 12)


def _one_sided(correct: Array) -> FitStatus:
    if correct.all():
        return FitStatus(
            "at-upper-bound",
            "every row of this set is predicted right, so the map raises every confidence to 1 "
            "or nearly; fit on a larger or harder set.",
        )
    if not correct.any():
        return FitStatus(
            "at-lower-bound",
            "no row of this set is predicted right, so the map lowers every confidence to the "
            "least there is, about 1 / k; check that the labels belong to these rows.",
        )
    return FitStatus("converged")
