"""Average thresholded confidence (Garg et al. 2022)."""

from __future__ import annotations

import math
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_choice
from shiftcal._types import Logits
from shiftcal.estimates._estimate import Point, share_variance
from shiftcal.estimates._temperature import clean_temperature
from shiftcal.estimates.base import AccuracyEstimator
from shiftcal.numerics.entropy import entropy
from shiftcal.numerics.softmax import p_max
from shiftcal.numerics.thresholds import atc_threshold, share_at_or_above
from shiftcal.surrogates import SurrogateBank

SCORES = ("confidence", "entropy")


@final
class ATC(AccuracyEstimator):
    """The share of rows at or above the score below which lie as many clean rows as are wrong.

    ``t`` such that ``#{s_i < t} = #{wrong i}`` on the clean set; the estimate is the share of
    target rows with ``s >= t``. The score is p_max or negative entropy ``Σ p log p``. Holds where
    the shift leaves the meaning of the score at ``t`` as it was; a network that stays sure while
    it is wrong is thought too accurate.

    The interval covers the draw of the target (``2 a (1 - a) / n``: the share is drawn, and so is
    the number right; it is too wide where both move together), that of the calibration set (``t``
    for one standard error of errors more and fewer, ``sqrt(d / m)`` with ``d`` the share of the m
    clean rows on the wrong side of ``t``), and the error under shift of
    :class:`AccuracyEstimator`.

    Args:
        score: ``"confidence"`` or ``"entropy"``.
        calibrated: Whether logits are first divided by the temperature of the clean set.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        score_: The score it was fitted for.
        temperature_: What logits are divided by.
        thresholds_: ``t``, then that of one standard error fewer and more errors.
    """

    uses_bank: ClassVar[bool] = False

    score_: str
    temperature_: float
    thresholds_: tuple[float, ...]

    def __init__(
        self, *, score: str = "confidence", calibrated: bool = True, input: str = "logits"
    ) -> None:
        self.score = score
        self.calibrated = calibrated
        self.input = input

    def _fit(self, bank: SurrogateBank) -> None:
        self.score_ = check_choice(self.score, SCORES, name="score")
        self.temperature_ = clean_temperature(bank, calibrated=self.calibrated)
        clean = bank.clean
        n = len(clean)
        scores = self._scores(clean.logits)
        right = clean.logits.argmax(axis=1) == clean.labels
        wrong = n - int(right.sum())
        threshold = atc_threshold(scores, wrong)
        misplaced = int(((scores >= threshold) != right).sum())
        spread = max(1, round(math.sqrt(misplaced)))
        fewer, more = max(wrong - spread, 0), min(wrong + spread, n)
        ends = (atc_threshold(scores, fewer), atc_threshold(scores, more))
        self.thresholds_ = (threshold, *ends)

    def _estimate(self, logits: Logits) -> Point:
        scores = self._scores(logits)
        value, most, least = (share_at_or_above(scores, t) for t in self.thresholds_)
        return Point(
            value,
            sampling_sd=math.sqrt(2 * share_variance(value, len(scores))),
            calibration_sd=(most - least) / 2,
            details={"threshold": self.thresholds_[0], "temperature": self.temperature_},
        )

    def _scores(self, logits: Logits) -> NDArray[np.float64]:
        if self.score_ == "confidence":
            return p_max(logits, self.temperature_)
        return -entropy(logits.astype(np.float64) / self.temperature_)
