"""Surrogate temperature scaling: one map on the union of all surrogate sets."""

from __future__ import annotations

from typing import ClassVar, final

from shiftcal._types import Floats, Logits, Probs
from shiftcal.maps import Map
from shiftcal.methods._selection import Selection
from shiftcal.methods.base import Method, fit_map, temperature_of
from shiftcal.rehearsals import Grouped
from shiftcal.surrogates import SurrogateBank


@final
class STS(Method):
    """One map fitted on all surrogate sets together; never looks at the target.

    ``T = argmin Σ_j NLL(D_j; T)`` over the sets ``D_1 ... D_J`` of the bank. With a bank of one
    set it is TS. It gives up some calibration on clean data for much of it under shift.

    Args:
        map: Name of the calibration map, or an unfitted one with its settings.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        map_: The fitted map.
    """

    uses_bank: ClassVar[bool] = True

    map_: Map

    def __init__(self, *, map: str | Map = "temperature", input: str = "logits") -> None:
        self.map = map
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        logits, labels = bank.union()
        self.map_ = fit_map(self.map, logits, labels, where=f"union of {len(bank)} sets")

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        return Selection(self.name(), temperature=temperature_of(self.map_))

    def needs_rows(self) -> str | None:
        """Nothing of the target is needed."""
        return None

    def _adapt_moments(self, target: Grouped) -> Selection:
        return Selection(self.name(), temperature=temperature_of(self.map_))

    def _apply(self, logits: Logits) -> Probs:
        return self.map_.apply_checked(logits)
