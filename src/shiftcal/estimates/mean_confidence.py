"""Mean calibrated confidence, by any method."""

from __future__ import annotations

import copy
import math
import warnings
from typing import final

from sklearn.base import clone

from shiftcal import methods
from shiftcal._types import Logits
from shiftcal.errors import InputError
from shiftcal.estimates._estimate import Point, share_variance
from shiftcal.estimates.base import AccuracyEstimator
from shiftcal.methods import Method
from shiftcal.surrogates import SurrogateBank


@final
class MeanConfidence(AccuracyEstimator):
    """The mean confidence that a method gives the target once it is adapted to it.

    ``a = mean c_i`` with ``c`` the calibrated confidence of the predicted class: confidences that
    are right on average add up to the number of right predictions. It is as good as the method is
    calibrated on the target as a whole.

    The interval covers the draw of the target (``Σ c_i (1 - c_i) / n²``, the variance of the
    number right given the confidences, plus ``var(c) / n``, that of the confidences: together
    ``a (1 - a) / n``), that of the calibration set (as if its m rows had fixed the mean of
    confidences like these: ``mean c (1 - c) / m``), and the error under shift of
    :class:`AccuracyEstimator`.

    Args:
        method: Name of a method, or a method with the settings wanted, fitted or not. It is
            copied and fitted on the bank; the one given stays as it is. Methods that need more
            than outputs of the target (features, mixed images) cannot be used.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        method_: The method, fitted on the bank.
        n_calibration_: Rows of the clean set.
    """

    method_: Method
    n_calibration_: int

    def __init__(self, *, method: str | Method = "sac", input: str = "logits") -> None:
        self.method = method
        self.input = input

    def _fit(self, bank: SurrogateBank) -> None:
        method = self._fresh()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            method.fit(bank)
        for warning in caught:
            # 1 here, 2 AccuracyEstimator.fit, 3 the caller's line
            warnings.warn(str(warning.message), warning.category, stacklevel=3)
        self.method_ = method
        self.n_calibration_ = len(bank.clean)

    def _estimate(self, logits: Logits) -> Point:
        method = copy.copy(self.method_)  # adapting changes it
        method.input = "logits"  # which probabilities have become by now
        selection = method.adapt(logits)
        c = method.confidence(logits)
        value = float(c.mean())
        details = {} if selection.temperature is None else {"temperature": selection.temperature}
        return Point(
            value,
            sampling_sd=math.sqrt(share_variance(value, len(c))),
            calibration_sd=math.sqrt(float((c * (1 - c)).mean()) / self.n_calibration_),
            details=details,
            flags=selection.flags,
        )

    def _fresh(self) -> Method:
        method = self.method
        if isinstance(method, str):
            made: Method = methods.get(method)(input=self.input)
        elif isinstance(method, Method):
            made = clone(method)
        else:
            raise InputError(
                f"method must be the name of a method or a method; got {method!r}. "
                f"Names: {', '.join(methods.names())}. With settings: SAC(distance='ks')."
            )
        if made.input != self.input:
            raise InputError(
                f"the method was made for {made.input} and this {self.name()} expects "
                f"{self.input}. Make both with the same input=."
            )
        if made.uses_features or made.uses_mixed:
            lacking = "features" if made.uses_features else "scores of mixed images"
            raise InputError(
                f"{self.name()} works with outputs only, and {made.name()} needs {lacking}. Take "
                "another method, such as sac; or adapt this one yourself and average its "
                "confidence."
            )
        return made
