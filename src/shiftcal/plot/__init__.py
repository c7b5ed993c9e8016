"""Plots: numbers in, a matplotlib ``Axes`` out.

One file is one plot, a function of the file's name. Each draws on the ``ax`` it is given, or on a
new figure if there is none, and returns the ``Axes``. Fonts, sizes and background are those the
user has set; no setting of matplotlib is changed. matplotlib comes with ``shiftcal[plot]`` and is
imported when something is drawn.

Beside them: :func:`errors_by_severity`, the numbers that :func:`ece_by_severity` draws.
"""

# These lines also put the function, not the file, behind each name.
from shiftcal.plot.confidence_density import confidence_density
from shiftcal.plot.ece_by_severity import ece_by_severity
from shiftcal.plot.errors_by_severity import errors_by_severity
from shiftcal.plot.reliability import reliability
from shiftcal.plot.selection import selection

__all__ = [
    "confidence_density",
    "ece_by_severity",
    "errors_by_severity",
    "reliability",
    "selection",
]
