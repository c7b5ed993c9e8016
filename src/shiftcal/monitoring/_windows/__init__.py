"""Windows: how the past of a stream is weighted. One file is one window."""

from shiftcal.monitoring._windows.base import Window
from shiftcal.monitoring._windows.exponential import Exponential
from shiftcal.monitoring._windows.sliding import Sliding

__all__ = ["Exponential", "Sliding", "Window"]
