"""Plots: numbers in, a matplotlib ``Axes`` out.

Each draws on ``ax``, or on a new figure, and returns the ``Axes``. Fonts, sizes and background are
the user's; no setting of matplotlib is changed. matplotlib comes with ``shiftcal[plot]`` and is
imported when something is drawn. :func:`errors_by_severity` computes what :func:`ece_by_severity`
draws.
"""

# The functions, not the modules of the same name.
from shiftcal.plot.density import confidence_density
from shiftcal.plot.reliability import reliability
from shiftcal.plot.selection import selection
from shiftcal.plot.severity import ece_by_severity, errors_by_severity

__all__ = [
    "confidence_density",
    "ece_by_severity",
    "errors_by_severity",
    "reliability",
    "selection",
]
