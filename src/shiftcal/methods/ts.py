"""Temperature scaling on the clean calibration set (Guo et al., 2017)."""

from __future__ import annotations

from typing import final

from shiftcal._types import Floats, Logits, Probs
from shiftcal.maps import Map
from shiftcal.methods._selection import Selection
from shiftcal.methods.base import Method, fit_map, temperature_of
from shiftcal.rehearsals import Grouped
from shiftcal.surrogates import SurrogateBank


@final
class TS(Method):
    """One temperature of least NLL on the clean set: ``softmax(z / T)``. Knows of no shift.

    Args:
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        map_: The fitted temperature.
    """

    map_: Map

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        clean = bank.clean
        self.map_ = fit_map("temperature", clean.logits, clean.labels, where=clean.name)

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        return Selection(self.name(), temperature=temperature_of(self.map_))

    def needs_rows(self) -> str | None:
        """Nothing of the target is needed."""
        return None

    def _adapt_moments(self, target: Grouped) -> Selection:
        return Selection(self.name(), temperature=temperature_of(self.map_))

    def _apply(self, logits: Logits) -> Probs:
        return self.map_.apply_checked(logits)
