"""Calibration maps: labelled logits in, a fitted map from logits to probabilities out.

One file is one map, found by its file name: ``maps.names()`` lists them,
``maps.get("temperature")`` gives the class.
"""

from shiftcal._registry import Registry
from shiftcal.maps.base import Map

_registry: Registry[Map] = Registry("shiftcal.maps", "calibration map", Map)
names = _registry.names
get = _registry.get

__all__ = ["Map", "get", "names"]
