"""Surrogate sets: the calibration set as it is, and the same set made harder step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shiftcal.surrogates.bank import SetSummary, SurrogateBank, SurrogateSet

if TYPE_CHECKING:
    from shiftcal.surrogates.ladder import EvenLadder, Rung, even_ladder

__all__ = ["EvenLadder", "Rung", "SetSummary", "SurrogateBank", "SurrogateSet", "even_ladder"]


def __getattr__(name: str) -> Any:
    if name not in ("EvenLadder", "Rung", "even_ladder"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shiftcal.surrogates import ladder as _even_ladder

    return globals().setdefault(name, getattr(_even_ladder, name))
