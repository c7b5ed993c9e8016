"""Figures of results: numbers and words in, a picture out, and the numbers kept beside it.

One file is one kind of figure, a frozen dataclass that holds everything it shows, in the units
shown (percent where it says percent). :func:`write_figure` draws it, :func:`read_figure` gives it
back.
"""

from shiftcal.report.figures.base import FigureData, read_figure, write_figure
from shiftcal.report.figures.boxes import Boxes, BoxNumbers, BoxSeries
from shiftcal.report.figures.calibration import CalibrationPlots, Reliability
from shiftcal.report.figures.densities import Densities, Surrogate, density
from shiftcal.report.figures.lines import Lines, Panel, Series

__all__ = [
    "BoxNumbers",
    "BoxSeries",
    "Boxes",
    "CalibrationPlots",
    "Densities",
    "FigureData",
    "Lines",
    "Panel",
    "Reliability",
    "Series",
    "Surrogate",
    "density",
    "read_figure",
    "write_figure",
]
