"""Temperature scaling by the entropy of the row."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from shiftcal._checks import check_range
from shiftcal._types import Labels, Logits, Probs, Weights
from shiftcal.maps.base import Map
from shiftcal.numerics.softmax import keep_top, softmax
from shiftcal.numerics.temperature.entropy_power import log_relative_entropy, solve_power


@final
class EntropyTemperature(Map):
    """A temperature for every row, a power of how unsure the model is of it.

    ``softmax(z / T(z))`` with ``T(z) = exp(a) h^b`` of least negative log-likelihood, ``h`` the
    entropy of ``softmax(z)`` over ``log k``, 1e-6 at least. ``b = 0`` is temperature scaling.
    Never changes the order of the classes of a row. The likelihood is not convex in ``a, b``; the
    best of three searches is taken, one of them from temperature scaling. (After the HTS of
    Balanya, Maroñas and Ramos 2022, whose T is ``softplus(a + b log h)``)

    Args:
        t_range: Smallest and largest temperature of any row.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        log_scale_: ``a``, the logarithm of T where the model is least sure.
        power_: ``b``.
        low_: Smallest temperature, as fitted.
        high_: Largest temperature, as fitted.
    """

    preserves_accuracy: ClassVar[bool] = True

    log_scale_: float
    power_: float
    low_: float
    high_: float

    def __init__(
        self, *, t_range: tuple[float, float] = (0.01, 100.0), input: str = "logits"
    ) -> None:
        self.t_range = t_range
        self.input = input

    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        self.low_, self.high_ = check_range(self.t_range, name="t_range")
        found = solve_power(logits, labels, weights, t_range=(self.low_, self.high_))
        self.log_scale_, self.power_, self.status_ = found

    def _apply(self, logits: Logits) -> Probs:
        log_t = self.log_scale_ + self.power_ * log_relative_entropy(logits)
        # Cut as logarithms: exp of a steep power may overflow.
        t = np.exp(np.clip(log_t, np.log(self.low_), np.log(self.high_)))
        scaled = logits.astype(np.float64)
        top = scaled.argmax(axis=1)
        scaled -= np.take_along_axis(scaled, top[:, None], axis=1)
        scaled /= t[:, None]
        probs = softmax(scaled)
        keep_top(probs, top)
        return probs
