"""Live use: logits calibrated as they come in, with an event when the data has shifted.

A :class:`Monitor` keeps sums of the last rows in blocks, chooses the calibration at the end of
every block as its method would for those rows, and separates a shift from chance by limits that
were set on streams simulated from the clean set of the bank.
"""

from shiftcal.monitoring.labels import Realised
from shiftcal.monitoring.monitor import (
    KINDS,
    STATES,
    Event,
    Exponential,
    Monitor,
    Sliding,
    Update,
    Window,
)

__all__ = ["KINDS", "STATES", "Event", "Exponential", "Monitor", "Realised", "Sliding", "Update"]
__all__ += ["Window"]
