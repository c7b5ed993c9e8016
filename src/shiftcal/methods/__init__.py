"""Methods: fitted on a surrogate bank, adapted to an unlabelled target, applied row by row.

``methods.names()`` lists them, ``methods.get("sac")`` gives the class. A method of your own is a
subclass of :class:`Method`, named as ``package.module:Class`` or declared as an entry point of
``shiftcal.methods``; its ``adapt`` gives a :class:`Selection`, which may have a :class:`Flag`.
"""

from shiftcal.methods.method import Method, Selection, fit_map
from shiftcal.registry import METHODS
from shiftcal.types import Flag

names = METHODS.names
get = METHODS.get

__all__ = ["Flag", "Method", "Selection", "fit_map", "get", "names"]
