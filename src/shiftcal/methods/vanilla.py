"""Vanilla: the model's own softmax, believed as it is."""

from __future__ import annotations

from typing import final

from shiftcal._types import Floats, Logits, Probs
from shiftcal.methods._selection import Selection
from shiftcal.methods.base import Method
from shiftcal.numerics.softmax import softmax
from shiftcal.rehearsals import Grouped
from shiftcal.surrogates import SurrogateBank


@final
class Vanilla(Method):
    """The raw softmax; learns nothing. The baseline every other method has to beat.

    Args:
        input: What the model gives: ``"logits"`` or ``"probabilities"``.
    """

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        pass

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        return Selection(self.name(), temperature=1.0)

    def needs_rows(self) -> str | None:
        """Nothing of the target is needed."""
        return None

    def _adapt_moments(self, target: Grouped) -> Selection:
        return Selection(self.name(), temperature=1.0)

    def _apply(self, logits: Logits) -> Probs:
        return softmax(logits)
