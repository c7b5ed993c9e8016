"""Surrogate sets: the calibration set as it is, and the same set made harder step by step."""

from shiftcal.surrogates.bank import SurrogateBank
from shiftcal.surrogates.summary import SetSummary
from shiftcal.surrogates.surrogate_set import SurrogateSet

__all__ = ["SetSummary", "SurrogateBank", "SurrogateSet"]
