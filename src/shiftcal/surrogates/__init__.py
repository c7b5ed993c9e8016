"""Surrogate sets: the calibration set as it is, and the same set made harder step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shiftcal.lazy import lazy
from shiftcal.surrogates.bank import SetSummary, SurrogateBank, SurrogateSet

if TYPE_CHECKING:
    from shiftcal.surrogates.ladder import EvenLadder, Rung, even_ladder

__all__ = ["EvenLadder", "Rung", "SetSummary", "SurrogateBank", "SurrogateSet", "even_ladder"]

__getattr__, __dir__ = lazy(__name__, {"ladder": "EvenLadder Rung even_ladder"})
