"""Live use: logits as they come in, calibrated at once, with a word when the data has shifted.

A :class:`Monitor` keeps sums of the last rows in blocks, chooses the calibration anew at the end of
every block as its method would for those rows, and tells a shift from chance by limits that were
set on streams redrawn from the clean set of the bank.
"""

from shiftcal.monitoring.monitor import Monitor
from shiftcal.monitoring.stream import KINDS, STATES, Event, Update
from shiftcal.monitoring.windows import Exponential, Sliding, Window

__all__ = ["KINDS", "STATES", "Event", "Exponential", "Monitor", "Sliding", "Update", "Window"]
