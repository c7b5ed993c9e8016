"""Temperature scaling by Brier score."""

from __future__ import annotations

from typing import ClassVar, final

from shiftcal._checks import check_range
from shiftcal._types import Labels, Logits, Probs, Weights
from shiftcal.maps.base import Map
from shiftcal.numerics.softmax import softmax
from shiftcal.numerics.temperature.brier import solve_brier_temperature


@final
class BrierTemperature(Map):
    """One temperature for all rows: ``softmax(z / T)`` with T of least Brier score.

    The score is the mean over rows of ``sum over k of (p_k - [label = k])**2``. Never changes
    which class is predicted. Weights may have any scale: T depends on their ratios only.

    Args:
        t_range: Smallest and largest temperature allowed.
        input: ``"logits"`` or ``"probabilities"``.
    """

    preserves_accuracy: ClassVar[bool] = True
    is_temperature: ClassVar[bool] = True

    temperature_: float

    def __init__(
        self, *, t_range: tuple[float, float] = (0.01, 100.0), input: str = "logits"
    ) -> None:
        self.t_range = t_range
        self.input = input

    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        t_range = check_range(self.t_range, name="t_range")
        solution = solve_brier_temperature(logits, labels, weights, t_range=t_range)
        self.temperature_ = solution.temperature
        self.status_ = solution.status

    def _apply(self, logits: Logits) -> Probs:
        return softmax(logits, self.temperature_)
