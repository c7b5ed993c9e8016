"""Metrics: confidences (or probabilities) and the truth in, one number out.

One file is one metric, a function of the file's name: ``metrics.names()`` lists them,
``metrics.get("ece")`` gives the function. All are fractions, never percent.

Beside them: :func:`bin_table`, the table behind ECE; :func:`bootstrap`, an interval for any metric;
:class:`MetricSketch`, all of them for data that does not fit in memory.
"""

from shiftcal._registry import Registry

# These lines also put the function, not the file, behind each name: after them
# ``shiftcal.metrics.ece`` is callable. A test asks that none is forgotten.
from shiftcal.metrics._bin_table import BinTable, bin_table
from shiftcal.metrics._bootstrap import bootstrap
from shiftcal.metrics._sketch import MetricSketch
from shiftcal.metrics.accuracy import accuracy
from shiftcal.metrics.aurc import aurc
from shiftcal.metrics.brier import brier
from shiftcal.metrics.classwise_ece import classwise_ece
from shiftcal.metrics.debiased_ece import debiased_ece
from shiftcal.metrics.ece import ece
from shiftcal.metrics.ks_error import ks_error
from shiftcal.metrics.mce import mce
from shiftcal.metrics.nll import nll
from shiftcal.metrics.smooth_ece import smooth_ece
from shiftcal.metrics.top1_brier import top1_brier

_registry: Registry[object] = Registry("shiftcal.metrics", "metric", None)
names = _registry.names
get = _registry.get

__all__ = [
    "BinTable",
    "MetricSketch",
    "accuracy",
    "aurc",
    "bin_table",
    "bootstrap",
    "brier",
    "classwise_ece",
    "debiased_ece",
    "ece",
    "get",
    "ks_error",
    "mce",
    "names",
    "nll",
    "smooth_ece",
    "top1_brier",
]
