"""Difference of confidences (Guillory et al. 2021)."""

from __future__ import annotations

import math
from typing import ClassVar, final

from shiftcal._types import Logits
from shiftcal.estimates._estimate import Point, share_variance
from shiftcal.estimates._temperature import clean_temperature
from shiftcal.estimates.base import AccuracyEstimator
from shiftcal.numerics.softmax import p_max
from shiftcal.surrogates import SurrogateBank


@final
class DoC(AccuracyEstimator):
    """Clean accuracy plus the change of mean confidence from the clean set to the target.

    ``a = a_clean + mean c_target - mean c_clean``, with ``c`` the p_max after the temperature of
    the clean set. Holds where confidence falls by as much as accuracy; under shift it falls by
    less, as a rule, and the estimate is too high.

    The interval covers the draw of the target (``a (1 - a) / n``, which is the variance of the
    number right given the confidences, plus that of the confidences), that of the calibration set
    (the variance of right minus confidence over its rows), and the error under shift of
    :class:`AccuracyEstimator`.

    Args:
        calibrated: Whether logits are first divided by the temperature of the clean set.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        temperature_: What logits are divided by.
        gap_: Accuracy minus mean confidence of the clean set.
        gap_sd_: Its standard error.
    """

    uses_bank: ClassVar[bool] = False

    temperature_: float
    gap_: float
    gap_sd_: float

    def __init__(self, *, calibrated: bool = True, input: str = "logits") -> None:
        self.calibrated = calibrated
        self.input = input

    def _fit(self, bank: SurrogateBank) -> None:
        self.temperature_ = clean_temperature(bank, calibrated=self.calibrated)
        clean = bank.clean
        right = clean.logits.argmax(axis=1) == clean.labels
        gaps = right - p_max(clean.logits, self.temperature_)
        self.gap_ = float(gaps.mean())
        self.gap_sd_ = float(gaps.std()) / math.sqrt(len(gaps))

    def _estimate(self, logits: Logits) -> Point:
        confidence = float(p_max(logits, self.temperature_).mean())
        value = min(max(confidence + self.gap_, 0.0), 1.0)
        return Point(
            value,
            sampling_sd=math.sqrt(share_variance(value, len(logits))),
            calibration_sd=self.gap_sd_,
            details={"mean_confidence": confidence, "temperature": self.temperature_},
        )
