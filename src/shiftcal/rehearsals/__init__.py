"""Rehearsed targets: surrogate sets under many class priors, and what was right for each.

A surrogate set has labels, so that it can be drawn again as if its classes were mixed otherwise,
and its best temperature and its accuracy are known for every such draw. Statistics of the outputs
alone, seen for many draws of many sets, then tell temperature and accuracy of a target without
labels.
"""

from shiftcal.rehearsals.fixed_size import FixedSize
from shiftcal.rehearsals.memory import Errors, Memory, remember
from shiftcal.rehearsals.response import Answer
from shiftcal.rehearsals.statistics import STATISTICS, Grouped, grouped_moments, output_statistics

__all__ = [
    "STATISTICS",
    "Answer",
    "Errors",
    "FixedSize",
    "Grouped",
    "Memory",
    "grouped_moments",
    "output_statistics",
    "remember",
]
