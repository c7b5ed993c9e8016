"""Methods: fitted on a surrogate bank, adapted to an unlabelled target, applied row by row.

One file is one method, found by its file name: ``methods.names()`` lists them,
``methods.get("sac")`` gives the class.
"""

from shiftcal._registry import Registry
from shiftcal.methods.base import Method

_registry: Registry[Method] = Registry("shiftcal.methods", "method", Method)
names = _registry.names
get = _registry.get

__all__ = ["Method", "get", "names"]
