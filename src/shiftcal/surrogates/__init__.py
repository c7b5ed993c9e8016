"""Surrogate sets: the calibration set as it is, and the same set made harder step by step."""

from shiftcal.surrogates.bank import SurrogateBank, SurrogateSet
from shiftcal.surrogates.summary import SetSummary

__all__ = ["SetSummary", "SurrogateBank", "SurrogateSet"]
