"""Vanilla, TS and STS."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from shiftcal.checks import check_weights, to_array
from shiftcal.maps import Map
from shiftcal.methods.method import (
    Method,
    Selection,
    fit_map,
    temperature_of,
    warn_of_one_set,
)
from shiftcal.methods.rehearsal import Grouped
from shiftcal.numerics.softmax import softmax
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Floats, Logits, Probs


@final
class Vanilla(Method):
    """The raw softmax; learns nothing. The baseline every other method has to beat.

    Args:
        input: What the model gives: ``"logits"`` or ``"probabilities"``.
    """

    name: ClassVar[str] = "vanilla"

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        pass

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        return Selection(self.name, temperature=1.0)

    def needs_rows(self) -> str | None:
        """Nothing of the target is needed."""
        return None

    def _adapt_moments(self, target: Grouped) -> Selection:
        return Selection(self.name, temperature=1.0)

    def _apply(self, logits: Logits) -> Probs:
        return softmax(logits)


class OneMap(Method):
    """A method that applies one fitted map to every target."""

    map_: Map

    @property
    def temperature_(self) -> float:
        """The fitted temperature."""
        self._require_fitted()
        temperature = temperature_of(self.map_)
        if temperature is None:
            raise AttributeError(
                f"this {type(self).__name__} has no temperature_: its map is not a temperature."
            )
        return temperature

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        return Selection(self.name, temperature=temperature_of(self.map_))

    def needs_rows(self) -> str | None:
        """Nothing of the target is needed."""
        return None

    def _adapt_moments(self, target: Grouped) -> Selection:
        return Selection(self.name, temperature=temperature_of(self.map_))

    def _apply(self, logits: Logits) -> Probs:
        return self.map_.apply_checked(logits)


@final
class TS(OneMap):
    """One temperature of least NLL on the clean set: ``softmax(z / T)``. Knows of no shift.

    Args:
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        map_: The fitted map.
        temperature_: Its temperature.
    """

    name: ClassVar[str] = "ts"
    uses_weights: ClassVar[bool] = True

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _fit(
        self,
        bank: SurrogateBank,
        source_features: Floats | None,
        sample_weight: object = None,
    ) -> None:
        clean = bank.clean
        weights = check_weights(sample_weight, n=len(clean.labels))
        self.map_ = fit_map(
            "temperature", clean.logits, clean.labels, where=clean.name, weights=weights
        )


@final
class STS(OneMap):
    """One map fitted on all surrogate sets together; never looks at the target.

    ``T = argmin Σ_j NLL(D_j; T)`` over the sets ``D_1 ... D_J`` of the bank. With a bank of one
    set it is TS, and ``fit`` warns of it. It gives up some calibration on clean data for much of
    it under shift.

    Args:
        map: Name of the calibration map, or an unfitted one with its settings.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        map_: The fitted map.
        temperature_: Its temperature, if the map is one.
    """

    name: ClassVar[str] = "sts"
    uses_bank: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = True

    def __init__(self, *, map: str | Map = "temperature", input: str = "logits") -> None:
        self.map = map
        self.input = input

    def _fit(
        self,
        bank: SurrogateBank,
        source_features: Floats | None,
        sample_weight: object = None,
    ) -> None:
        logits, labels = bank.union()
        if sample_weight is not None:
            given = to_array(sample_weight, name="sample_weight")
            if len(given) != len(labels) and {len(s.labels) for s in bank} == {len(given)}:
                sample_weight = np.tile(given, len(bank))
        weights = check_weights(sample_weight, n=len(labels))
        where = f"union of {len(bank)} sets"
        self.map_ = fit_map(self.map, logits, labels, where=where, weights=weights)
        warn_of_one_set(self, bank, self.map_)
