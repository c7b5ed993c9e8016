"""Ensemble temperature scaling."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_range
from shiftcal._types import FitStatus, Labels, Logits, Probs, Weights
from shiftcal.maps.base import Map
from shiftcal.numerics.mixture_weights import solve_mixture
from shiftcal.numerics.softmax import keep_top, softmax
from shiftcal.numerics.temperature.likelihood import solve_temperature

# A part that gives nothing to a label (softmax underflowed) would make the likelihood infinite.
_LEAST_DENSITY = 1e-300
# The uniform part alone predicts no class.
_MOST_UNIFORM = 1 - 1e-6


@final
class EnsembleTemperature(Map):
    """Temperature scaling, the model and a uniform guess, mixed.

    ``p' = w1 softmax(z / T) + w2 softmax(z) + w3 / k`` with ``w >= 0`` and ``w1 + w2 + w3 = 1``.
    T is the temperature of least negative log-likelihood; then, with T fixed, so is ``w``, which
    is a convex problem. ``w3`` is kept below ``1 - 1e-6``, so that there is a predicted class: it
    is always the model's. (Zhang, Kailkhura and Han 2020, who use squared error for ``w``)

    Args:
        t_range: Smallest and largest temperature allowed.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        temperature_: T.
        weights_: ``(3,)`` weights of the three parts.
    """

    preserves_accuracy: ClassVar[bool] = True

    temperature_: float
    weights_: NDArray[np.float64]

    def __init__(
        self, *, t_range: tuple[float, float] = (0.01, 100.0), input: str = "logits"
    ) -> None:
        self.t_range = t_range
        self.input = input

    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        t_range = check_range(self.t_range, name="t_range")
        cooled = solve_temperature(logits, labels, weights, t_range=t_range)
        self.temperature_ = cooled.temperature
        self.status_ = cooled.status
        n, k = logits.shape
        label = np.arange(n), labels
        parts = [softmax(logits, cooled.temperature)[label], softmax(logits)[label]]
        densities = np.column_stack([*parts, np.full(n, 1 / k)])
        found = solve_mixture(np.maximum(densities, _LEAST_DENSITY), weights)
        self.weights_ = _with_a_predicted_class(found.weights)
        if found.gap > 1e-6 and self.status_.converged:
            self.status_ = FitStatus(
                "not-converged",
                "the weights of the ensemble may be off: their mean log-likelihood is up to "
                f"{found.gap:.1e} below the best; use the temperature map on this set.",
            )

    def _apply(self, logits: Logits) -> Probs:
        cooled, own, uniform = self.weights_
        probs = cooled * softmax(logits, self.temperature_)
        probs += own * softmax(logits)
        probs += uniform / logits.shape[1]
        keep_top(probs, logits.argmax(axis=1))
        return probs


def _with_a_predicted_class(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    if weights[2] <= _MOST_UNIFORM:
        return weights
    return np.array([1 - _MOST_UNIFORM, 0.0, _MOST_UNIFORM])
