"""Weights that make source samples stand for a target, from features of both."""

from shiftcal.weighting.diagnostics import effective_sample_size, weight_details, weight_flags
from shiftcal.weighting.importance import ImportanceWeights

__all__ = ["ImportanceWeights", "effective_sample_size", "weight_details", "weight_flags"]
