"""Mixed targets: one calibration for every camera, site or batch, small ones leaning on the rest.

:class:`GroupedCalibration` takes any fitted method that adapts to a target.
"""

from shiftcal.grouping._selection import GroupChoice, GroupedSelection
from shiftcal.grouping.grouped_calibration import GroupedCalibration

__all__ = ["GroupChoice", "GroupedCalibration", "GroupedSelection"]
