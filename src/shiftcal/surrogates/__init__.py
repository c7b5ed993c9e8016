"""Surrogate sets: the calibration set as it is, and the same set made harder step by step."""

from __future__ import annotations

from shiftcal.surrogates.bank import SetSummary, SurrogateBank, SurrogateSet

__all__ = ["SetSummary", "SurrogateBank", "SurrogateSet"]
