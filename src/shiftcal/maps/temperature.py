"""Temperature scaling."""

from __future__ import annotations

from typing import ClassVar, final

from shiftcal._checks import check_range
from shiftcal._types import Labels, Logits, Probs, Weights
from shiftcal.maps.base import Map
from shiftcal.numerics.softmax import softmax
from shiftcal.numerics.temperature.likelihood import solve_temperature


@final
class Temperature(Map):
    """One temperature for all rows: ``softmax(z / T)`` with T of least negative log-likelihood.

    Never changes which class is predicted. The likelihood is convex in 1/T, so T is the global
    optimum; if it does not lie inside ``t_range``, ``status_`` says at which end T was left and
    why. (Guo et al. 2017)

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
        solution = solve_temperature(logits, labels, weights, t_range=t_range)
        self.temperature_ = solution.temperature
        self.status_ = solution.status

    def _apply(self, logits: Logits) -> Probs:
        return softmax(logits, self.temperature_)
