"""Accuracy read off the sets of the bank, by mean confidence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import final

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Flag, Logits
from shiftcal.estimates._estimate import Point, share_variance
from shiftcal.estimates.base import AccuracyEstimator
from shiftcal.numerics.softmax import p_max
from shiftcal.rehearsals import Grouped
from shiftcal.surrogates import SetSummary, SurrogateBank


@final
class SurrogateCurve(AccuracyEstimator):
    """The accuracy that sets of the bank have at the target's mean confidence.

    ``a = g(μ)`` with ``μ`` the mean raw p_max of the target and ``g`` the non-decreasing function
    of least ``Σ n_j (g(μ_j) - a_j)²`` over the sets, linear between them, constant beyond: a bank
    of several corruptions has several accuracies near one confidence, and g goes between them.
    Holds where accuracy and confidence fall together as on the bank. A bank of one set gives the
    accuracy of that set, whatever the target.

    The interval covers the draw of the target (``a (1 - a) / n``, and what g makes of one standard
    error of μ), that of the calibration samples (``a (1 - a) / m``, m the rows of the smallest
    set; the sets share samples, so that more sets make it no smaller), and the error under shift
    of :class:`AccuracyEstimator`.

    Args:
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        confidence_: ``(m,)`` mean confidences of the sets, ascending, each once.
        accuracy_: ``(m,)`` g there.
        ladder_: Every set in numbers.
    """

    confidence_: NDArray[np.float64]
    accuracy_: NDArray[np.float64]
    ladder_: tuple[SetSummary, ...]

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _fit(self, bank: SurrogateBank) -> None:
        from sklearn.isotonic import isotonic_regression

        self.ladder_ = bank.summaries()
        weights = np.array([s.n for s in self.ladder_], dtype=np.float64)
        right = weights * [s.accuracy for s in self.ladder_]
        found, which = np.unique([s.mean_confidence for s in self.ladder_], return_inverse=True)
        mass = np.bincount(which, weights).astype(np.float64)
        self.confidence_ = found
        accuracy = np.bincount(which, right) / mass
        self.accuracy_ = isotonic_regression(accuracy, sample_weight=mass)

    def _estimate(self, logits: Logits) -> Point:
        confidence = p_max(logits)
        return self._point(len(confidence), float(confidence.mean()), float(confidence.std()))

    def needs_rows(self) -> str | None:
        """Mean and deviation of the confidence are all that is needed."""
        return None

    def _estimate_moments(self, target: Grouped) -> Point:
        return self._point(target.n, target.mean_confidence, target.sd_confidence)

    def _point(self, n: int, mean: float, sd: float) -> Point:
        error = sd / math.sqrt(n)
        low, value, high = (self._accuracy(mean + step) for step in (-error, 0.0, error))
        smallest = min(s.n for s in self.ladder_)
        return Point(
            value,
            sampling_sd=math.hypot((high - low) / 2, math.sqrt(share_variance(value, n))),
            calibration_sd=math.sqrt(share_variance(value, smallest)),
            details={"mean_confidence": mean},
            flags=tuple(self._outside(mean, error)),
        )

    def _accuracy(self, mean: float) -> float:
        return float(np.interp(mean, self.confidence_, self.accuracy_))

    def _outside(self, mean: float, error: float) -> Iterator[Flag]:
        lowest = min(self.ladder_, key=lambda s: s.mean_confidence)
        highest = max(self.ladder_, key=lambda s: s.mean_confidence)
        for end, excess, word in (
            (lowest, lowest.mean_confidence - mean, "below"),
            (highest, mean - highest.mean_confidence, "above"),
        ):
            if excess > 3 * math.hypot(error, end.standard_error):
                yield Flag(
                    "outside-range",
                    f"the target's mean confidence {mean:.4f} lies {word} that of every surrogate "
                    f"set ({end.mean_confidence:.4f}, {end.name}): the accuracy given is that "
                    "of this end of the bank, and a guess.",
                )
